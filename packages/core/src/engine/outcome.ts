import type { KeyState } from '../algorithms/algorithm.ts'
import { algorithmOf } from '../algorithms/table.ts'
import { effectiveWindowMs, remainingUnits } from '../algorithms/window.ts'
import type { Check, Receipt } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { Outcome } from '../model/store.ts'

/**
 * Returns the ms that `check` must wait for its units: 0 if they fit at `now`, `Infinity` if they
 * never will.
 */
export function waitMs(state: KeyState, check: Check, now: number): number {
  const { cost, limit, policy } = check
  if (limit === 0) return Number.POSITIVE_INFINITY
  const algorithm = algorithmOf(policy)
  const capacity = algorithm.capacity(check)
  if (cost > capacity) return Number.POSITIVE_INFINITY
  return cost === 0 ? 0 : algorithm.msUntil(state, check, { now, target: capacity - cost })
}

/**
 * An allowed outcome whose other values are unknown. It is a class, since optimized code keeps
 * outdated shapes of literals. V8 then converted each outcome on its first read: half of the time
 * of a decision in memory.
 */
export class CheckOutcome implements Outcome {
  policy: Policy
  allowed = true
  limit: number
  remaining: number | undefined = undefined
  resetMs: number | undefined = undefined
  retryAfterMs = 0
  delayMs = 0
  receipt: Receipt | undefined = undefined

  constructor({ policy, limit }: Pick<Check, 'policy' | 'limit'>) {
    this.policy = policy
    this.limit = limit
  }

  /** Denies for `waitMs`, unless it is 0. Returns itself. */
  denyFor(waitMs: number): this {
    this.allowed = waitMs === 0
    this.retryAfterMs = waitMs
    return this
  }
}

/** Reads the outcome of an allowed check from its state, which must already include its charge. */
export function outcomeOf(state: KeyState, check: Check, now: number): CheckOutcome {
  const { limit, policy } = check
  const algorithm = algorithmOf(policy)
  const used = algorithm.used(state, check, now)
  const { capacity, quota = capacity } = algorithm
  const most = quota(check)
  const outcome = new CheckOutcome(check)
  outcome.remaining = remainingUnits(limit, most, used)
  if (algorithm.resetMs) outcome.resetMs = algorithm.resetMs(state, check, now)
  else if (algorithm.counts === 'units') {
    outcome.resetMs = policy.windowMs
    if (limit === 0 || used === 0) return outcome
    const target = Math.min(used, most) - 1
    const msToNextUnit = algorithm.msUntil(state, check, { now, target })
    outcome.resetMs = effectiveWindowMs(check, outcome.remaining, msToNextUnit)
  }
  return outcome
}

/** Returns whether taking `check` writes anything: cost 0 and limit 0 (which blocks all) do not. */
export function leavesTrace(check: Check): boolean {
  return check.cost > 0 && check.limit > 0
}

/** Returns the outcome of a check that no store decided: allowed, everything else unknown. */
export function unknownOutcome(check: Check): Outcome {
  return new CheckOutcome(check)
}

/**
 * Returns the outcome of a check that this process allows from the state it knows.
 * @param known the remaining units and effective window of the key
 */
export function admittedOutcome(
  check: Check,
  { remaining, resetMs }: { remaining: number; resetMs: number },
): CheckOutcome {
  const outcome = new CheckOutcome(check)
  outcome.remaining = Math.min(check.limit, remaining)
  const leastMs = Math.max(1, Math.ceil(resetMs))
  const isPaced = !algorithmOf(check.policy).resetMs
  outcome.resetMs = isPaced ? effectiveWindowMs(check, outcome.remaining, leastMs) : leastMs
  return outcome
}

/** Returns the units that count, and the most that may: of a bucket its level and capacity. */
export function usageOf({
  policy,
  limit,
  remaining,
}: Pick<Outcome, 'policy' | 'limit' | 'remaining'>): {
  readonly used: number | undefined
  readonly capacity: number
} {
  const algorithm = algorithmOf(policy)
  const check = { policy, cost: 0, limit }
  const capacity = algorithm.capacity(check)
  const quota = algorithm.quota?.(check) ?? capacity
  // `remaining` never exceeds the limit, nor falls below 0: then the level is unknown.
  const isCut = (remaining === limit && quota > limit) || (remaining === 0 && capacity > quota)
  const isKnown = remaining !== undefined && limit !== Number.POSITIVE_INFINITY && !isCut
  return { capacity, used: isKnown ? quota - remaining : undefined }
}
