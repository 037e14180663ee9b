import type { Policies, PolicyStatus, VersionRecord } from '@sluice/policies'
import type { Depth, Queue } from '@sluice/queue'
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
}

interface QueueDepth {
  readonly name: string
  /** `undefined` while the broker does not answer. */
  readonly depth: Depth | undefined
}

/** Time (ms) for which an answer of a store is shared. */
const ttlMs = 2_000
/** A queue is two commands of Redis at most: many of them are asked less often. */
const ttlOfQueueMs = 1_000

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
    depths: shared(Math.max(ttlMs, queues.length * ttlOfQueueMs), () =>
      Promise.all(
        queues.map(async ({ broker }) => {
          const depth = await broker.depth().catch(() => undefined)
          return { name: broker.name, depth }
        }),
      ),
    ),
  }
}

/** @param take is called when no answer is young enough. A failure is not kept. */
function shared<T>(lifeMs: number, take: () => Promise<T>): View<T> {
  let kept: { readonly untilMs: number; readonly value: Promise<T> } | undefined

  function view(): Promise<T> {
    const nowMs = performance.now()
    if (kept && kept.untilMs > nowMs) return kept.value
    const taken = { untilMs: nowMs + lifeMs, value: take() }
    kept = taken
    taken.value.catch(() => {
      if (kept === taken) kept = undefined
    })
    return taken.value
  }

  return Object.assign(view, {
    forget() {
      kept = undefined
    },
  })
}
