import type { KeyState } from '../algorithms/algorithm.ts'
import { remainingUnits } from '../algorithms/effective-window.ts'
import { algorithmOf } from '../algorithms/table.ts'
import type { Check, Receipt } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { Outcome } from '../model/store.ts'

/**
 * Returns the ms that `check` has to wait for its units: 0 when they fit at `now`, `Infinity` when
 * they never will.
 */
export function waitMs(state: KeyState, check: Check, now: number): number {
  const { cost, limit, policy } = check
  if (limit === 0) return Number.POSITIVE_INFINITY
  const algorithm = algorithmOf(policy)
  const capacity = algorithm.capacity(check)
  if (cost > capacity) return Number.POSITIVE_INFINITY
  return cost === 0 ? 0 : algorithm.msUntil(state, check, { now, target: capacity - cost })
}

/** Returns the ms that `check` is held when it is allowed. Call it before its units are taken. */
export function delayOf(state: KeyState, check: Check, now: number): number {
  return algorithmOf(check.policy).delayMs?.(state, check, now) ?? 0
}

/**
 * An outcome that is allowed, and of which all else is unknown. It is a class, since optimized code
 * keeps outdated shapes of literals. V8 converted each outcome when it was first read, which took
 * half of a decision in memory.
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

  /** Denies for so many ms, unless they are 0. Returns the outcome itself. */
  denyFor(waitMs: number): this {
    this.allowed = waitMs === 0
    this.retryAfterMs = waitMs
    return this
  }
}

/**
 * Reads the outcome of an allowed check from its state. A charge of the check must be in the state
 * already.
 */
export function outcomeOf(state: KeyState, check: Check, now: number): CheckOutcome {
  const algorithm = algorithmOf(check.policy)
  const used = algorithm.used(state, check, now)
  const { capacity, quota = capacity } = algorithm
  const outcome = new CheckOutcome(check)
  outcome.remaining = remainingUnits(check.limit, quota(check), used)
  outcome.resetMs = algorithm.resetMs(state, check, { now, used })
  return outcome
}

/**
 * Tells whether taking `check` writes anything: cost 0 writes nothing, and neither does limit 0,
 * which blocks everything.
 */
export function leavesTrace(check: Check): boolean {
  return check.cost > 0 && check.limit > 0
}

/** Returns the outcome of a check that no store was asked about: allowed, and all else unknown. */
export function unknownOutcome(check: Check): Outcome {
  return new CheckOutcome(check)
}

/**
 * Returns the outcome of a check that this process allows by the state that it knows.
 * @param known the units left, and the effective window of the key
 */
export function admittedOutcome(
  check: Check,
  { remaining, resetMs }: { remaining: number; resetMs: number },
): CheckOutcome {
  const { policy, limit } = check
  const outcome = new CheckOutcome(check)
  outcome.remaining = Math.min(limit, remaining)
  const isPaced = !algorithmOf(policy).resetsAtEnd
  const pacedMs = isPaced ? Math.ceil((outcome.remaining * policy.windowMs) / limit) : 0
  outcome.resetMs = Math.max(1, pacedMs, Math.ceil(resetMs))
  return outcome
}
