import type { Decision, MaybePromise, Policy } from '@sluice/core'
import type { RequestContext } from '../request/context.ts'
import type { HttpRequest, ResponseBody, ResponseField } from '../request/exchange.ts'

/**
 * Accepts requests instead of the application, such as a queue: they are answered before their work
 * is done, and do not reach the application.
 * @typeParam Native the framework's request
 */
export interface Admission<Native> {
  /**
   * True if it accepts requests that the limits deny. Then a denial is reported to observers, and
   * counts as a strike, only if the request is refused.
   */
  readonly overflows: boolean
  /**
   * Checks the guard's policies, including the penalty, when the guard is created.
   * @throws SluiceError if its options name an unknown policy
   */
  checkPolicies?(policies: readonly Policy[]): void
  /**
   * Returns whether it accepts a request. It may also return the answer to a request that the
   * application must not see: over a limit, a request that was accepted before.
   * @param decision the limits' decision; `undefined` for a request that they do not apply to
   */
  takes(
    asked: AdmissionRequest<Native>,
    decision: Decision | undefined,
  ): MaybePromise<boolean | Taken>
  /** Accepts a request and answers it. */
  take(asked: AdmissionRequest<Native>): MaybePromise<Taken>
  /** Returns whether the answer depends on the client's preferences, which caches must know. */
  varies(request: HttpRequest): boolean
}

/** A request as admission sees it. */
export type AdmissionRequest<Native> = Pick<
  RequestContext<Native>,
  'native' | 'request' | 'settleAtEnd'
>

/** The answer to a request that was accepted, or could not be. */
export interface Taken {
  readonly status: number
  readonly fields: readonly ResponseField[]
  readonly body: ResponseBody
  /**
   * True if the request's units are given back: there was no room for it, or the server failed.
   * @default false
   */
  readonly givesBack?: boolean
  /**
   * True if the request was accepted now. Of requests over a limit, only these and server failures
   * get this answer; all others are refused. @default false
   */
  readonly isNew?: boolean
  /** True if it was accepted before, and this repeats that answer. @default false */
  readonly isKnown?: boolean
  /** There is no room now, but there may be after this time. */
  readonly fullForMs?: number
}
