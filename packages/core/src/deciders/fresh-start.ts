import { algorithmOf } from '../algorithms/table.ts'
import type { StoreWay } from '../ledger/local-units.ts'
import { type Check, isLimited } from '../model/check.ts'
import { type Decider, decisionOf } from '../model/decision.ts'
import type { Outcome } from '../model/store.ts'
import { andThen, type MaybePromise } from '../runtime/maybe-promise.ts'

/** Forgets the units of checks. Yields false, and never rejects, if that failed. */
export type Reset = (checks: readonly Check[]) => MaybePromise<boolean>

/**
 * Lets a key begin anew after a block of `thenReset`: its units are forgotten as the block begins,
 * and while the block lasts it takes none.
 */
export function freshStarts(reset: Reset): Decider {
  return (next) => (op, checks, request) => {
    const penalty = checks.at(-1)
    if (op !== 'consume' || !penalty?.policy.thenReset) return next(op, checks, request)
    return andThen(next(op, checks, request), (decision) => {
      const blockMs = decision.outcomes[checks.length - 1]?.retryAfterMs ?? 0
      // Without the store each process blocks by itself.
      if (blockMs === 0 || decision.source !== 'store') return decision
      const cleared = clearedBy(penalty, checks)
      const hasUnits = decision.outcomes.some(
        ({ limit, remaining = limit }, index) =>
          remaining < limit && checks[index] && cleared.includes(checks[index]),
      )
      if (!hasUnits) return decision
      // The wait of the block is reported once it is true.
      return andThen(reset(cleared), (isDone) => {
        if (!isDone) return decision
        const outcomes = decision.outcomes.map((outcome, index) =>
          checks[index] && cleared.includes(checks[index]) ? within(blockMs, outcome) : outcome,
        )
        return decisionOf(outcomes, checks, decision.source)
      })
    })
  }
}

/**
 * Counts a denial against a penalty, and clears the other checks of the request if that blocks the
 * key. Nobody waits for it.
 */
export type Strike = (penalty: Check, beside?: readonly Check[]) => void

export function strikes(way: Pick<StoreWay, 'charge'>, reset: Reset): Strike {
  return (penalty, beside = []) => {
    void andThen(way.charge(penalty), ({ outcomes: [struck] }) => {
      if (penalty.policy.thenReset && struck?.remaining === 0)
        void reset(clearedBy(penalty, beside))
    })
  }
}

/** The checks whose units a block forgets: those of its key, but for requests in flight. */
function clearedBy(penalty: Check, checks: readonly Check[]): readonly Check[] {
  const key = penalty.identity ?? penalty.key
  return checks.filter(
    (check) =>
      algorithmOf(check.policy).counts === 'units' &&
      isLimited(check) &&
      (check.identity ?? check.key) === key,
  )
}

/** An outcome whose wait ends with the block; `Infinity` stays, since no wait helps. */
function within(blockMs: number, outcome: Outcome): Outcome {
  const { retryAfterMs, resetMs } = outcome
  if (retryAfterMs <= blockMs || retryAfterMs === Number.POSITIVE_INFINITY) return outcome
  return { ...outcome, retryAfterMs: blockMs, resetMs: resetMs && Math.min(resetMs, blockMs) }
}
