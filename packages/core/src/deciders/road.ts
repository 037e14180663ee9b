import { algorithmOf } from '../algorithms/table.ts'
import { unknownOutcome } from '../engine/outcome.ts'
import { isMemoryStore } from '../memory-store/memory-store.ts'
import { type Check, divideChecks, isLimited, isSurelyEnforced } from '../model/check.ts'
import {
  type Decide,
  type Decider,
  type Decision,
  decideOthers,
  decisionOf,
  ShadowRun,
  withShadow,
} from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { ManualChange, Outcome } from '../model/store.ts'
import type { Caller } from '../resilience/caller.ts'
import { storeError } from '../resilience/store-monitor.ts'
import { andThen, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { AppliedLimits } from './applied-limits.ts'

/** Resets keys. Never rejects; returns false if that failed. */
type Reset = (checks: readonly Check[]) => MaybePromise<boolean>

/** The path of a decision, built once from the policies' options. */
export interface Road {
  readonly decide: Decide
  /** For checks of the road's policies at their own limits. */
  readonly decideOwn: Decide
  consume(checks: readonly Check[], request?: object): MaybePromise<Decision>
  /** Counts a denial against a penalty. Its block may reset the other keys of the request. */
  strike(penalty: Check, beside?: readonly Check[]): void
  /** Resets or blocks keys here and in the store. Rejects if the store failed. */
  overwrite(change: ManualChange): Promise<boolean>
  /** Reports all uncounted units to the store, and returns unspent grants. */
  close(): Promise<void> | undefined
}

/** @param limits records the limits of requests, if some checks have their own */
export function roadOf(
  policies: readonly Policy[],
  caller: Caller,
  limits: AppliedLimits | undefined,
): Road {
  const { limiter, shared } = caller
  const { store } = limiter
  // It answers synchronously, and never fails.
  const memory = isMemoryStore(store) ? store : undefined
  const asks = (option: 'prefetchMs' | 'maxUncounted') =>
    !memory && policies.some((policy) => policy[option] > 0)
  const grants = asks('prefetchMs') ? shared.grants : undefined
  const uncounted = asks('maxUncounted') ? shared.uncounted : undefined
  const atStore: Decide = memory
    ? (op, checks) => decisionOf(memory.apply(op, checks), checks, 'store')
    : caller.decide
  const counted = uncounted?.decider(caller)(atStore) ?? atStore
  const limited = grants?.decider(caller)(counted) ?? counted
  async function overwrite(change: ManualChange): Promise<boolean> {
    if (change.checks.length === 0) return false
    uncounted?.forget(change.checks)
    const { op, checks } = change
    const whole = op === 'reset' && grants ? { op, checks: grants.forget(checks) } : change
    try {
      return (await shared.changes.overwrite(whole, limiter)).includes(true)
    } catch (error) {
      throw storeError(error)
    }
  }

  const reset: Reset = (checks) => {
    if (memory) return memory.change({ op: 'reset', checks }).length > 0
    return overwrite({ op: 'reset', checks }).then(
      () => true,
      (error: unknown) => {
        limiter.onFailure('reset', error)
        return false
      },
    )
  }

  const special = shadows(freshStarts(reset)(unlimitedChecks(limited)))
  const decide: Decide = (op, checks, request) => {
    if (op === 'consume') limits?.note(checks)
    const way = checks.length > 0 && checks.every(isPlain) ? limited : special
    return way(op, checks, request)
  }
  return {
    decide,
    decideOwn: policies.every((policy) => isPlain({ policy, limit: policy.limit }))
      ? limited
      : decide,
    consume: (checks, request) => decide('consume', checks, request),
    strike(penalty, beside = []) {
      void andThen(caller.decide('charge', [penalty]), ({ outcomes: [struck] }) => {
        if (penalty.policy.thenReset && struck?.remaining === 0)
          void reset(clearedBy(penalty, beside))
      })
    },
    overwrite,
    close() {
      caller.denials?.close()
      uncounted?.close()
      return grants?.close(store)
    },
  }
}

/** Returns whether a check needs none of the special deciders. */
function isPlain(check: Pick<Check, 'policy' | 'limit' | 'shadow'>): boolean {
  return isLimited(check) && isSurelyEnforced(check) && !check.policy.thenReset
}

/** Decides each shadow policy on its own, after the enforced ones. Nobody waits for it. */
const shadows: Decider = (next) => (op, checks, request) => {
  const { enforced, shadows: others } = divideChecks(checks)
  const decision = next(op, enforced, request)
  if (op === 'peek' || others.length === 0) return decision
  const run = (known: Decision): Decision =>
    withShadow(known, new ShadowRun(others.map((check: Check) => next(op, [check]))))
  // If the shadow policies were enforced, they would not count a denied request either.
  return andThen(decision, (known) => (known.allowed || op === 'charge' ? run(known) : known))
}

/** Answers unlimited checks, without the store. */
export const unlimitedChecks: Decider = (next) => (op, checks, request) => {
  const unlimited = checks.map((check) =>
    isLimited(check) ? undefined : { ...unknownOutcome(check), remaining: check.limit },
  )
  return decideOthers(checks, unlimited, (limited) => next(op, limited, request))
}

/** Resets a key when a block with `thenReset` begins. During the block it takes no units. */
function freshStarts(reset: Reset): Decider {
  return (next) => (op, checks, request) => {
    const penalty = checks.at(-1)
    if (op !== 'consume' || !penalty?.policy.thenReset) return next(op, checks, request)
    return andThen(next(op, checks, request), (decision) => {
      const blockMs = decision.outcomes[checks.length - 1]?.retryAfterMs ?? 0
      // Without the store, each process has its own blocks.
      if (blockMs === 0 || decision.source !== 'store') return decision
      const cleared = clearedBy(penalty, checks)
      const isCleared = checks.map((check) => cleared.includes(check))
      const hasUnits = decision.outcomes.some(
        ({ limit, remaining = limit }, index) => isCleared[index] && remaining < limit,
      )
      if (!hasUnits) return decision
      // Only after the reset does the wait end with the block.
      return andThen(reset(cleared), (isDone) => {
        if (!isDone) return decision
        const outcomes = decision.outcomes.map((outcome, index) =>
          isCleared[index] ? within(blockMs, outcome) : outcome,
        )
        return decisionOf(outcomes, checks, decision.source)
      })
    })
  }
}

/** The checks that a block resets: those of its key, except for requests in flight. */
function clearedBy(penalty: Check, checks: readonly Check[]): readonly Check[] {
  const key = penalty.identity ?? penalty.key
  return checks.filter(
    (check) =>
      algorithmOf(check.policy).counts === 'units' &&
      isLimited(check) &&
      (check.identity ?? check.key) === key,
  )
}

/** Cuts the wait of an outcome to that of the block. `Infinity` stays: waiting cannot help. */
function within(blockMs: number, outcome: Outcome): Outcome {
  const { retryAfterMs, resetMs } = outcome
  if (retryAfterMs <= blockMs || retryAfterMs === Number.POSITIVE_INFINITY) return outcome
  return { ...outcome, retryAfterMs: blockMs, resetMs: resetMs && Math.min(resetMs, blockMs) }
}
