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

/** One request of a framework, with all that its adapter does for the kit. */
export interface AdapterContext<Native extends object, Handler> extends RequestContext<Native> {
  /** Node's response, if there is one: its head tells whether it is a redirect. */
  readonly raw?: HeadedResponse | undefined
  /** Shows the application what was decided, as `request.rateLimit`. */
  showDecision(decision: RequestDecision): void
  /** Sets the status of a refusal, before its fields: the user's functions begin with it. */
  setStatus(status: number): void
  /** Replies in place of the application. Status and fields of the response are set already. */
  send(status: number, body: ResponseBody): void
  /** Has the user's handler reply. */
  callHandler(handler: Handler, refusal: Refusal): unknown
}

/** The part of a guard, or of a guard of a route, that serves requests. */
export type ServingGuard<Native extends object, Handler> = Pick<Guard<Native, Handler>, 'check'> &
  Partial<Pick<Guard<Native, Handler>, 'hidesOnRedirect'>>

/** A refused request, as a handler of the user gets it. */
export interface Refusal {
  readonly status: number
  readonly decision: RequestDecision
}

/** The limiter behind a middleware. */
export interface Limiting<Exchange extends readonly unknown[]> {
  /**
   * The limiter: to refund a decision, or to peek at a key or reset it. A policy on a route has
   * keys of its own there unless it has a name.
   */
  readonly limiter: Limiter
  /** Answers what a request would get, by its own key, limit and cost. Takes nothing. */
  peek(...exchange: Exchange): Promise<Peeked>
}

/** Puts the limiter of a guard on a middleware. */
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
 * Decides on a request, and carries out the decision: sets fields, holds the request, replies.
 * @param guard a guard, or the check that an adapter puts in its place
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

/** Continues with the next handler, or tells the framework of an error. */
type Next = (error?: Error) => void

/**
 * Calls `next` when a step says that the request continues: at once, if nothing in it is async.
 * Errors of the step go to `next` too, as `throwingObjects` makes them.
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

/** The type of `next` knows nothing but errors, and frameworks pass any object. */
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
  return new Error(`a function of the options threw ${quote(thrown)}, which is no Error`, {
    cause: thrown,
  })
}
