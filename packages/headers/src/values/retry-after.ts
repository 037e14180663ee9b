import { isBlocked, isViolated, type PolicyState, wholeSeconds } from './policy-state.ts'

/**
 * 20 days. Node's timers overflow at 2^31 ms (24.8 days) and then fire at once; axios-retry adds up
 * to 20 % before it sets one.
 */
const maxRetryAfterMs = 1_728_000_000

/**
 * The value of Retry-After: one whole number of seconds from 1 to 1,728,000. Zero, fractions, dates
 * and longer delays each make some client retry at once.
 *
 * @param jitterMs only ever adds: resets synchronise clients, which add no jitter of their own to a
 * delay they are told
 * @returns undefined when the wait is unknown, or `Infinity`: a header then would promise what
 * cannot be
 * @see core/src/engine/outcome.ts and core/src/model/decision.ts, which compute the wait, and
 * http/src/responses/response-fields.ts, which computes the jitter
 */
export function formatRetryAfter(
  retryAfterMs: number | undefined,
  jitterMs = 0,
): string | undefined {
  if (retryAfterMs === undefined || retryAfterMs === Number.POSITIVE_INFINITY) return undefined
  const waitMs = jitterMs > 0 ? retryAfterMs + jitterMs : retryAfterMs
  const seconds = wholeSeconds(Math.min(waitMs, maxRetryAfterMs))
  return seconds === undefined ? undefined : `${seconds}`
}

/**
 * Returns the wait (ms) of a request at the policies that deny it; `Infinity` when one of them
 * never lets it pass.
 */
export function longestWaitMs(states: readonly PolicyState[]): number | undefined {
  let longestMs: number | undefined
  for (const state of states) {
    const waitMs = state.denied === true ? policyWaitMs(state) : undefined
    if (waitMs !== undefined && (longestMs === undefined || waitMs > longestMs)) longestMs = waitMs
  }
  return longestMs
}

/**
 * Returns the wait (ms) of a request at a policy that denies it; `undefined` when that is unknown.
 */
export function policyWaitMs(state: PolicyState): number | undefined {
  if (isBlocked(state)) return Number.POSITIVE_INFINITY
  return Number.isNaN(state.retryAfterMs) ? undefined : state.retryAfterMs
}

/**
 * Returns the ms that every reset field is made from. The reset of a violated policy equals its
 * Retry-After without jitter, so that a client may follow either. A policy without a reset
 * (concurrency) gets none: its retry is only a hint.
 */
export function effectiveResetMs(state: PolicyState, rejected: boolean): number | undefined {
  if (isBlocked(state) || state.resetMs === undefined) return undefined
  const waitMs = isViolated(state, rejected) ? policyWaitMs(state) : undefined
  if (waitMs === undefined || waitMs === Number.POSITIVE_INFINITY) return state.resetMs
  return Math.min(waitMs, maxRetryAfterMs)
}
