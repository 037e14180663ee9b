import type { Decision, DecisionSource, Policy, Reservation } from '@sluice/core'
import type { ResponseBody, ResponseField } from './exchange.ts'

/** The decision on an HTTP request, with the functions that its handler may call. */
export interface RequestDecision extends Decision {
  /**
   * The policy that denies for the longest; where none denies, the one that lets the fewest
   * requests pass; `undefined` where none was asked.
   */
  readonly policy: Policy | undefined
  /**
   * The key that `policy` counted, as its resolver found it; `JSON.stringify` leaves it out. Redact
   * it before it reaches a log.
   */
  readonly key: string | undefined
  /**
   * Adds units that are known only now (bytes, rows, tokens) to those that the request took. All
   * calls of a request are charged at once when its response is over, even if its client leaves.
   * They refuse no request. Units above the limit are missing for the next requests.
   * @param units a whole number ≥ 0
   * @param policy the name of the policy to charge @default all policies of the limiter but those
   * that count requests in flight
   * @throws SluiceError when `units` is no such number, or the limiter has no such policy
   */
  charge(units: number, policy?: string): void
  /**
   * Spends units that a policy with `reserve` holds for this request, while its handler works.
   * @param policy as for `budget`
   * @returns false if so many units are not left: then nothing was spent, and the work should stop
   */
  spend(units?: number, policy?: string): boolean
  /**
   * The units that a policy with `reserve` holds for this request. They are settled when its
   * response is over. If its client leaves before, `signal` aborts too.
   * Policies whose `reserve` is the same function have one budget.
   * @param policy the name of the policy @default the only one
   * @throws SluiceError when there is no such budget
   */
  budget(policy?: string): Reservation
  /**
   * Forgets all that the identities of this request have taken of these policies, and lifts their
   * blocks: after a login that was right, say. The units of this request are forgotten too, so none
   * of them are given back later. Rejects when the store failed.
   * @returns whether anything was there
   */
  reset(): Promise<boolean>
}

/** Refuses a request without asking a policy. By default no wait helps. */
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

/** The request passes when its turn has come: it is held until then. */
export interface Delay {
  readonly action: 'delay'
  /** As of the decision: set before the wait. */
  readonly fields: readonly ResponseField[]
  /** Resolves to true if the request continues, and to false if its response is over. */
  readonly turn: Promise<boolean>
}

/** The request is refused. */
export interface Reject<Handler = unknown> {
  readonly action: 'reject'
  readonly status: number
  readonly fields: readonly ResponseField[]
  /** The body to send; `undefined` where a handler of the user's replies instead. */
  readonly body: ResponseBody | undefined
  /**
   * The function that replies in place of the body; `'throw'`: the error handling of the framework.
   */
  readonly handler: Handler | 'throw' | undefined
}

/** The request is answered in place of the application: the admission took it over. */
export interface Answer {
  readonly action: 'answer'
  readonly status: number
  readonly fields: readonly ResponseField[]
  readonly body: ResponseBody
}

/** The result of a guard for one request. */
export interface Passage<Handler = unknown> {
  /** `undefined` when nothing was decided: the request is skipped, say. */
  readonly decision: RequestDecision | undefined
  readonly verdict: Verdict<Handler>
  /**
   * Settled when the response is over. `undefined`, as for most requests, means that nothing is
   * held, so no listener is needed.
   */
  readonly hold: Hold | undefined
}

/** The passage of a request that Sluice has nothing to say about. */
export const passWithoutFields: Passage<never> = {
  decision: undefined,
  verdict: { action: 'pass', fields: [] },
  hold: undefined,
}

/**
 * Something that a request occupies until its response is over, such as a lease. Only the first
 * call of the two counts. It may return a promise of the store's work, which never rejects. A
 * runtime that stops at the end of a response has to wait for it.
 */
export interface Hold {
  /** The response was sent, with this status. */
  finish(status: number): unknown
  /** The connection went first. */
  abort(): unknown
}

/** Several things that a request holds, settled together; `undefined` where there are none. */
export function allHolds(...holds: readonly (Hold | undefined)[]): Hold | undefined {
  const held = holds.filter((hold) => hold !== undefined)
  if (held.length < 2) return held[0]
  return {
    finish: (status) => Promise.all(held.map((hold) => hold.finish(status))),
    abort: () => Promise.all(held.map((hold) => hold.abort())),
  }
}
