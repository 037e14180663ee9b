import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { Check } from './check.ts'
import type { Decision } from './decision.ts'
import type { DecidingOp } from './store.ts'

/**
 * Decides the checks of one request.
 * @param request the request, if other calls decide it too: together they wait for one deadline
 */
export type Decide = (
  op: DecidingOp,
  checks: readonly Check[],
  request?: object,
) => MaybePromise<Decision>

/** Answers requests, or some of their checks, and hands on the others. */
export type Decider = (next: Decide) => Decide
