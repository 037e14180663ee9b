import type { Policies, PolicyStatus, VersionRecord } from '@sluice/policies'
import type { Broker, Depth, Queue } from '@sluice/queue'
import { fromStore } from './api-error.ts'
import type { AuditRecord, AuditTrail } from './audit-trail.ts'

/** An answer from a store, shared by all tabs. */
interface Shared<T> {
  (): Promise<T>
  /** Drops the answer: after a change it would be stale. */
  forget(): void
  readonly last: T | undefined
}

export interface SharedReads {
  readonly members: Shared<PolicyStatus['fleet']>
  readonly history: Shared<readonly VersionRecord[]>
  readonly audit: Shared<readonly AuditRecord[]>
  readonly depths: Shared<readonly QueueDepth[]>
  readonly deadLetters: DeadLetterReads
}

interface QueueDepth {
  readonly name: string
  /** `undefined` while the broker does not answer. */
  readonly depth: Depth | undefined
}

type Dead = Awaited<ReturnType<Broker['deadLetters']>>
type Page = Parameters<Broker['deadLetters']>[0]

interface DeadLetterReads {
  (broker: Broker, page: Page): Promise<Dead>
  forget(): void
}

/** Time (ms) for which a store's answer is shared. */
const ttlMs = 2_000
/** A queue takes at most two Redis commands: many queues are read less often. */
const ttlOfQueueMs = 1_000
/** A dead letter takes one Redis command: long lists are read less often. */
const ttlOfJobMs = 400
const maxLists = 50

interface Sources {
  readonly policies: Policies | undefined
  readonly audit: AuditTrail
  readonly queues: readonly Pick<Queue, 'broker'>[]
}

export function sharedReadsOf({ policies, audit, queues }: Sources): SharedReads {
  return {
    members: shared(ttlMs, async () => (await policies?.status())?.fleet ?? []),
    history: shared(ttlMs, async () =>
      policies?.canChange ? fromStore(() => policies.history()) : [],
    ),
    audit: shared(ttlMs, () => audit.records()),
    deadLetters: deadLetterReads(),
    depths: shared(Math.max(ttlMs, queues.length * ttlOfQueueMs), () =>
      Promise.all(
        queues.map(async ({ broker }) => {
          const depth = await fromStore(() => broker.depth()).catch(() => undefined)
          return { name: broker.name, depth }
        }),
      ),
    ),
  }
}

function deadLetterReads(): DeadLetterReads {
  const lists = new Map<string, Shared<Dead>>()

  function deadLetters(broker: Broker, page: Page): Promise<Dead> {
    const key = JSON.stringify([broker.name, page.offset, page.limit])
    const lifeMs = (jobs: Dead): number => jobs.length * ttlOfJobMs * lists.size
    const list =
      lists.get(key) ?? shared(ttlMs, () => fromStore(() => broker.deadLetters(page)), lifeMs)
    lists.delete(key)
    lists.set(key, list)
    for (const oldest of lists.keys()) if (lists.size > maxLists) lists.delete(oldest)
    return list()
  }

  return Object.assign(deadLetters, { forget: () => lists.clear() })
}

/**
 * Shares an answer for a time. Failures are not cached.
 * @param take is called if no answer is recent enough
 * @param longerMs the time for which an answer is shared, if that is longer
 */
function shared<T>(
  lifeMs: number,
  take: () => Promise<T>,
  longerMs: (value: T) => number = () => 0,
): Shared<T> {
  let kept: { untilMs: number; readonly value: Promise<T> } | undefined
  let last: T | undefined

  function read(): Promise<T> {
    const nowMs = performance.now()
    if (kept && kept.untilMs > nowMs) return kept.value
    const taken = { untilMs: nowMs + lifeMs, value: take() }
    kept = taken
    taken.value.then(
      (value) => {
        last = value
        taken.untilMs = nowMs + Math.max(lifeMs, longerMs(value))
      },
      () => {
        if (kept === taken) kept = undefined
      },
    )
    return taken.value
  }

  function forget(): void {
    kept = undefined
  }

  return Object.defineProperty(Object.assign(read, { forget, last }), 'last', { get: () => last })
}
