import {
  andThen,
  isPromise,
  type Limiter,
  type MaybePromise,
  type Peeked,
  quote,
} from '@sluice/core'
import type { Guard } from '../guard/guard.ts'
import type { RequestContext } from '../request/context.ts'
import { type ResponseBody, setFields } from '../request/exchange.ts'
import type { Passage, RequestDecision } from '../request/passage.ts'
import { RateLimitError } from '../responses/rate-limit-error.ts'
import { fieldsOnHead } from '../responses/response-fields.ts'
import { beforeHead, type HeadedResponse } from './response-end.ts'

/** One request of a framework, and everything its adapter does for the kit. */
export interface AdapterContext<Native extends object, Handler> extends RequestContext<Native> {
  /** Node's response, if there is one: its head shows whether it is a redirect. */
  readonly raw?: HeadedResponse | undefined
  /** Exposes the decision to the application as `request.rateLimit`. */
  showDecision(decision: RequestDecision): void
  /** Sets the status of a refusal before the fields, so that user functions see it. */
  setStatus(status: number): void
  /** Replies instead of the application. Status and fields are already set. */
  send(status: number, body: ResponseBody): void
  /** Has the user's handler reply. */
  callHandler(handler: Handler, refusal: Refusal): unknown
}

/** The part of a guard, or of a route guard, that serves requests. */
export type ServingGuard<Native extends object, Handler> = Pick<Guard<Native, Handler>, 'check'> &
  Partial<Pick<Guard<Native, Handler>, 'hidesOnRedirect'>>

/** A refused request, as passed to a user's handler. */
export interface Refusal {
  readonly status: number
  readonly decision: RequestDecision
}

/** The limiter behind a middleware. */
export interface Limiting<Exchange extends readonly unknown[]> {
  /**
   * The limiter: to refund a decision, or to peek at or reset a key. An unnamed policy on a route
   * has separate keys.
   */
  readonly limiter: Limiter
  /** Returns the decision that a request would get by its key, limit and cost. Takes nothing. */
  peek(...exchange: Exchange): Promise<Peeked>
}

/** Attaches the limiter of a guard to a middleware. */
export function withLimiter<
  Middleware extends object,
  Native extends object,
  Exchange extends readonly unknown[],
>(
  middleware: Middleware,
  { limiter, peek }: Pick<Guard<Native>, 'limiter' | 'peek'>,
  contextOf: (...exchange: Exchange) => Parameters<Guard<Native>['peek']>[0],
): Middleware & Limiting<Exchange> {
  const asked = async (...exchange: Exchange) => peek(contextOf(...exchange))
  return Object.assign(middleware, { limiter, peek: asked })
}

/**
 * Decides a request and applies the decision: sets fields, delays the request, replies.
 * @param guard a guard, or the check that an adapter uses instead
 * @returns whether the request continues
 * @throws or rejects with the errors of users' functions
 */
export function serve<Native extends object, Handler>(
  context: AdapterContext<Native, Handler>,
  { check, hidesOnRedirect }: ServingGuard<Native, Handler>,
): MaybePromise<boolean> {
  if (hidesOnRedirect && context.raw) {
    beforeHead(context.raw, (status) => hideOnRedirect(context, status))
  }
  const passage = check(context)
  return isPromise(passage)
    ? passage.then((known) => carryOut(known, context))
    : carryOut(passage, context)
}

function carryOut<Handler>(
  { decision, verdict, hold }: Passage<Handler>,
  context: AdapterContext<object, Handler>,
): MaybePromise<boolean> {
  const { response } = context
  if (hold) context.settleAtEnd(hold)
  if (decision) context.showDecision(decision)
  const isRefused = verdict.action === 'reject' || verdict.action === 'answer'
  if (isRefused && !response.headersSent) context.setStatus(verdict.status)
  setFields(response, verdict.fields)
  if (verdict.action === 'pass') return true
  if (verdict.action === 'delay') return verdict.turn
  if (response.headersSent) return false
  if (verdict.action === 'reject' && verdict.handler && decision) {
    const { handler, status, fields } = verdict
    if (handler === 'throw') throw new RateLimitError({ status, fields, decision })
    return andThen(context.callHandler(handler, { status, decision }), () => false)
  }
  if (verdict.body) context.send(verdict.status, verdict.body)
  return false
}

/** Removes our fields from a redirect just before its head is written, with `hideOnRedirect`. */
export function hideOnRedirect(
  { shown, response }: Pick<AdapterContext<object, never>, 'shown' | 'response'>,
  status: number,
): void {
  setFields(response, fieldsOnHead(shown, status))
}

/** Continues with the next handler, or passes an error to the framework. */
type Next = (error?: Error) => void

/**
 * Calls `next` if a step lets the request continue: synchronously, if nothing in it is async.
 * Errors of the step go to `next` too, as objects (see `throwingObjects`).
 */
export function continueWith(next: Next, step: () => MaybePromise<boolean>): void {
  let goesOn: MaybePromise<boolean>
  try {
    goesOn = step()
  } catch (error) {
    failWith(next, error)
    return
  }
  if (goesOn === true) next()
  else if (goesOn) {
    goesOn.then(
      (yes) => yes && next(),
      (error) => failWith(next, error),
    )
  }
}

/** The type of `next` allows only errors, but frameworks pass any object. */
function failWith(next: Next, thrown: unknown): void {
  Reflect.apply(next, undefined, [asObject(thrown)])
}

/**
 * Awaits a step. It always throws or rejects with an object. Other values become an Error, since
 * frameworks take `undefined` or `'route'` as permission to continue.
 */
export async function throwingObjects<T>(step: () => MaybePromise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    throw asObject(error)
  }
}

function asObject(thrown: unknown): object {
  if (typeof thrown === 'object' && thrown !== null) return thrown
  return new Error(`a function of the options threw ${quote(thrown)}, which is not an Error`, {
    cause: thrown,
  })
}
