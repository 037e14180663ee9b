import type { Check } from '../check.ts'
import type { Outcome } from '../store.ts'
import type { Algorithm } from './algorithm.ts'

/** What one key of one policy has taken: a state, and the algorithm that understands it. */
export interface Counter<State = unknown> {
  readonly algorithm: Algorithm<State>
  readonly state: State
}

/** How long `check` has to wait for its units: 0 when they fit at `now`, `Infinity` when they never will. */
export function waitMs({ algorithm, state }: Counter, check: Check, now: number): number {
  const { cost, limit } = check
  if (limit === 0 || cost > limit) return Number.POSITIVE_INFINITY
  return cost === 0 ? 0 : algorithm.msUntil(state, check, { now, target: limit - cost })
}

/** The outcome of a check whose wait is known, read from the state as it is: after the charge, where one was made. */
export function outcomeOf(
  { algorithm, state }: Counter,
  check: Check,
  { now, retryAfterMs }: { now: number; retryAfterMs: number },
): Outcome {
  const { policy, limit } = check
  return {
    policy,
    allowed: retryAfterMs === 0,
    limit,
    remaining: Math.max(0, limit - algorithm.used(state, check, now)),
    resetMs: algorithm.resetMs(state, check, now),
    retryAfterMs,
  }
}

/** Whether taking `check` leaves a trace: nothing is written for cost 0, nor where everything is blocked anyway. */
export function leavesTrace(check: Check): boolean {
  return check.cost > 0 && check.limit > 0
}
