import type { Policies, PolicyStatus, VersionRecord } from '@sluice/policies'
import type { Broker, Depth, Queue } from '@sluice/queue'
import type { AuditRecord, AuditTrail } from '../audit/audit-trail.ts'
import { fromStore } from './api-error.ts'

/** A view of a store that all tabs share: it is asked once in a while, however many they are. */
interface View<T> {
  (): Promise<T>
  /** Has the store asked anew: after a change the answer would be old. */
  forget(): void
}

export interface Views {
  readonly members: View<PolicyStatus['fleet']>
  readonly history: View<readonly VersionRecord[]>
  readonly audit: View<readonly AuditRecord[]>
  readonly depths: View<readonly QueueDepth[]>
  readonly deadLetters: DeadLetterViews
}

interface QueueDepth {
  readonly name: string
  /** `undefined` while the broker does not answer. */
  readonly depth: Depth | undefined
}

type Dead = Awaited<ReturnType<Broker['deadLetters']>>
type Page = Parameters<Broker['deadLetters']>[0]

interface DeadLetterViews {
  (broker: Broker, page: Page): Promise<Dead>
  forget(): void
}

/** Time (ms) for which an answer of a store is shared. */
const ttlMs = 2_000
/** A queue is two commands of Redis at most: many of them are asked less often. */
const ttlOfQueueMs = 1_000
/** A dead letter is one command of Redis: long lists are asked less often. */
const ttlOfJobMs = 400
/** Lists of dead letters that are kept. */
const maxLists = 50

interface Sources {
  readonly policies: Policies | undefined
  readonly audit: AuditTrail
  readonly queues: readonly Pick<Queue, 'broker'>[]
}

export function viewsOf({ policies, audit, queues }: Sources): Views {
  return {
    members: shared(ttlMs, async () => (await policies?.status())?.fleet ?? []),
    history: shared(ttlMs, async () =>
      policies?.canChange ? fromStore(() => policies.history()) : [],
    ),
    audit: shared(ttlMs, () => audit.records()),
    deadLetters: deadLetterViews(),
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

function deadLetterViews(): DeadLetterViews {
  const lists = new Map<string, View<Dead>>()

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
 * Shares an answer for a time. A failure is not kept.
 * @param take is called when no answer is young enough
 * @param longerMs the time for which an answer is shared, if that is longer
 */
function shared<T>(
  lifeMs: number,
  take: () => Promise<T>,
  longerMs: (value: T) => number = () => 0,
): View<T> {
  let kept: { untilMs: number; readonly value: Promise<T> } | undefined

  function view(): Promise<T> {
    const nowMs = performance.now()
    if (kept && kept.untilMs > nowMs) return kept.value
    const taken = { untilMs: nowMs + lifeMs, value: take() }
    kept = taken
    taken.value.then(
      (value) => {
        taken.untilMs = nowMs + Math.max(lifeMs, longerMs(value))
      },
      () => {
        if (kept === taken) kept = undefined
      },
    )
    return taken.value
  }

  return Object.assign(view, {
    forget() {
      kept = undefined
    },
  })
}
