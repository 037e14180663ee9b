import { andThen, type Decision, type MaybePromise } from '@sluice/core'
import type { GuardOptions, Message } from '../guard-options.ts'
import type { RejectBody } from '../passage.ts'
import type { RequestDecision } from '../settlement/request-decision.ts'
import { type Problem, plainProblem, problemMediaType, quotaExceeded } from './problem.ts'

export interface Refusal<Native> {
  readonly native: Native
  readonly decision: RequestDecision
  readonly status: number
  /** The names of the visible policies that deny. */
  readonly violated: readonly string[]
}

/**
 * The decision on a request that was allowed, but that there is no room to hold: it is refused as if the store had failed, which
 * is no fault of the client's either.
 */
export function turnedAway({ delayMs }: Decision): Decision {
  return { allowed: false, outcomes: [], retryAfterMs: delayMs, delayMs: 0, source: 'closed' }
}

/** The status of a refusal: a store that failed, or a room that is full, is our problem and not the client's. */
export function refusalStatus(decision: Decision, statusCode: number): number {
  return decision.source === 'closed' ? 503 : statusCode
}

/** What the client reads: the user's message, or a problem. A fixed message speaks of limits, so a 503 does without. */
export function refusalBody<Native>(
  message: GuardOptions<Native>['message'],
  { native, decision, status, violated }: Refusal<Native>,
): MaybePromise<RejectBody> {
  const problem =
    decision.source === 'closed' ? plainProblem(status) : quotaExceeded(violated, status)
  if (typeof message === 'function') {
    return andThen(message(native, decision), (found) => bodyOf(found, problem))
  }
  return bodyOf(decision.source === 'closed' ? undefined : message, problem)
}

function bodyOf(message: Message | undefined, problem: Problem): RejectBody {
  if (typeof message === 'string') {
    return { contentType: 'text/plain; charset=utf-8', text: message }
  }
  const isObject = typeof message === 'object' && message !== null
  return isObject
    ? { contentType: 'application/json', text: JSON.stringify(message) }
    : { contentType: problemMediaType, text: JSON.stringify(problem) }
}
