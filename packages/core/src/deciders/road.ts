import { isMemoryStore } from '../memory-store/memory-store.ts'
import { type Decide, decisionOf } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { ManualChange } from '../model/store.ts'
import type { Caller } from '../resilience/caller.ts'
import type { SharedStore } from '../resilience/shared-store.ts'
import { appliedLimitsOf, noteLimits } from './applied-limits.ts'
import { freshStarts, type Reset, type Strike, strikes } from './fresh-start.ts'
import { shadows, unlimitedChecks } from './set-apart.ts'

/** The way of a decision, put together once from the options of the policies. */
export interface Road {
  /** For any checks. */
  readonly decide: Decide
  /** For checks at the limits of the policies that the road was made for. */
  readonly decideOwn: Decide
  readonly strike: Strike
  /**
   * Resets or blocks keys at the store, and forgets what this process holds of them. Rejects when
   * the store failed.
   */
  overwrite(change: ManualChange): Promise<readonly boolean[]>
  /** Tells the store of all that it has not counted, and returns what is not spent. */
  close(): Promise<void> | undefined
}

interface RoadOptions {
  readonly policies: readonly Policy[]
  /** Tells whether some checks bring their own limits. */
  readonly notesLimits: boolean
  readonly shared: SharedStore
  readonly caller: Caller
}

export function roadOf({ policies, notesLimits, shared, caller }: RoadOptions): Road {
  const { store } = caller
  // It answers at once, and is never away.
  const memory = isMemoryStore(store) ? store : undefined
  const grants =
    memory || !policies.some(({ prefetchMs }) => prefetchMs > 0) ? undefined : shared.grants
  const uncounted =
    memory || !policies.some(({ maxUncounted }) => maxUncounted > 0) ? undefined : shared.uncounted
  const atStore: Decide = memory
    ? (op, checks) => decisionOf(memory.apply(op, checks), checks, 'store')
    : caller.decide
  const limitedByStore = uncounted ? uncounted.decider(caller)(atStore) : atStore
  const limited = grants ? grants.decider(caller)(limitedByStore) : limitedByStore
  const overwrite: Road['overwrite'] = (change) => {
    uncounted?.forget(change.checks)
    if (change.op === 'block' || !grants) return caller.overwrite(change)
    return caller.overwrite({ op: 'reset', checks: grants.forget(change.checks) })
  }

  const reset: Reset = (checks) => {
    if (memory) return memory.change({ op: 'reset', checks }).length > 0
    return overwrite({ op: 'reset', checks }).then(
      () => true,
      (error: unknown) => {
        caller.onFailure('reset', error)
        return false
      },
    )
  }

  const fresh = freshStarts(reset)
  const own = policies.some(({ thenReset }) => thenReset) ? fresh(limited) : limited
  const any = shadows(fresh(unlimitedChecks(limited)))
  const decide = notesLimits ? noteLimits(appliedLimitsOf(store))(any) : any
  return {
    decide,
    decideOwn: policies.every(isPlain) ? own : decide,
    strike: strikes(caller, reset),
    overwrite,
    close() {
      caller.denials?.close()
      uncounted?.close()
      return grants?.close(store)
    },
  }
}

/** Tells whether each check of a policy has a limit, and is enforced. */
function isPlain({ limit, enforcedShare }: Policy): boolean {
  return limit !== Number.POSITIVE_INFINITY && enforcedShare >= 1
}
