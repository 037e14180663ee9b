import type { Decision, DecisionSource, Policy, Reservation } from '@sluice/core'
import type { ResponseBody, ResponseField } from './exchange.ts'

/** The decision on an HTTP request, with the functions that its handler may call. */
export interface RequestDecision extends Decision {
  /**
   * The policy that denies for the longest. If none denies, the policy that lets the fewest
   * requests pass; `undefined` if none was checked.
   */
  readonly policy: Policy | undefined
  /**
   * The key that `policy` counted, as its resolver found it; `JSON.stringify` leaves it out. Redact
   * it before it reaches a log.
   */
  readonly key: string | undefined
  /**
   * Charges units that are known only now (bytes, rows, tokens), in addition to those already
   * taken. All calls of a request are charged together when its response ends, even if the client
   * disconnects. This never refuses the request; units above the limit reduce the quota of later
   * requests.
   * @param units a whole number ≥ 0
   * @param policy the name of the policy to charge @default all policies of the limiter except
   * those that count requests in flight
   * @throws SluiceError if `units` is invalid, or the limiter has no such policy
   */
  charge(units: number, policy?: string): void
  /**
   * Spends units that a policy with `reserve` holds for this request, while its handler runs.
   * @param policy as for `budget`
   * @returns false if fewer units are left: then nothing was spent, and the work should stop
   */
  spend(units?: number, policy?: string): boolean
  /**
   * The units that a policy with `reserve` holds for this request. They are settled when its
   * response ends. If the client disconnects earlier, `signal` aborts too. Policies with the same
   * `reserve` function share one budget.
   * @param policy the name of the policy @default the only one
   * @throws SluiceError if there is no such budget
   */
  budget(policy?: string): Reservation
  /**
   * Resets what the identities of this request have used of these policies, and lifts their blocks,
   * for example after a successful login. The units of this request are reset too, so none of them
   * are given back later. Rejects if the store fails.
   * @returns whether anything was there
   */
  reset(): Promise<boolean>
}

/** Refuses a request without checking a policy. By default no wait helps. */
export function refuseUnasked(
  source: DecisionSource,
  retryAfterMs: number = Number.POSITIVE_INFINITY,
): Decision & { readonly outcomes: readonly never[] } {
  return { allowed: false, outcomes: [], retryAfterMs, delayMs: 0, source }
}

/** The instruction to the adapter for a request. */
export type Verdict<Handler = unknown> = Pass | Delay | Answer | Reject<Handler>

/** The request passes. */
export interface Pass {
  readonly action: 'pass'
  readonly fields: readonly ResponseField[]
}

/** The request is delayed until its turn, and then passes. */
export interface Delay {
  readonly action: 'delay'
  /** As of the decision: set before the delay. */
  readonly fields: readonly ResponseField[]
  /** Resolves to true if the request continues, and to false if its response is over. */
  readonly turn: Promise<boolean>
}

/** The request is refused. */
export interface Reject<Handler = unknown> {
  readonly action: 'reject'
  readonly status: number
  readonly fields: readonly ResponseField[]
  /** The body to send; `undefined` if a user's handler replies instead. */
  readonly body: ResponseBody | undefined
  /** The function that replies instead; `'throw'` for the framework's error handling. */
  readonly handler: Handler | 'throw' | undefined
}

/** The request is answered by the admission, not by the application. */
export interface Answer {
  readonly action: 'answer'
  readonly status: number
  readonly fields: readonly ResponseField[]
  readonly body: ResponseBody
}

/** The result of a guard for one request. */
export interface Passage<Handler = unknown> {
  /** `undefined` if nothing was decided, for example for a skipped request. */
  readonly decision: RequestDecision | undefined
  readonly verdict: Verdict<Handler>
  /**
   * To settle when the response ends. `undefined`, as for most requests, means that nothing is
   * held, so no listener is needed.
   */
  readonly hold: Hold | undefined
}

/** The passage of a request that Sluice does not limit. */
export const passWithoutFields: Passage<never> = {
  decision: undefined,
  verdict: { action: 'pass', fields: [] },
  hold: undefined,
}

/**
 * Something that a request occupies until its response ends, such as a lease. Only the first of the
 * two calls counts. It may return a promise for the store's work, which never rejects. A runtime
 * that stops after a response must wait for it.
 */
export interface Hold {
  /** The response was sent with this status. */
  finish(status: number): unknown
  /** The connection closed before that. */
  abort(): unknown
}

/** Combines several holds, which are settled together; `undefined` if there are none. */
export function allHolds(...holds: readonly (Hold | undefined)[]): Hold | undefined {
  const held = holds.filter((hold) => hold !== undefined)
  if (held.length < 2) return held[0]
  return {
    finish: (status) => Promise.all(held.map((hold) => hold.finish(status))),
    abort: () => Promise.all(held.map((hold) => hold.abort())),
  }
}
