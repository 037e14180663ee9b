import type { Decision, MaybePromise, Policy } from '@sluice/core'
import type { RequestContext } from '../request/context.ts'
import type { HttpRequest, ResponseBody, ResponseField } from '../request/exchange.ts'

/**
 * Takes requests in place of the application, such as a queue: they are answered before they are
 * done, and go no further.
 * @typeParam Native the framework's request
 */
export interface Admission<Native> {
  /**
   * Returns whether it takes requests that the limits deny. Then observers receive a denial, and is
   * a strike, only if the request is refused.
   */
  readonly overflows: boolean
  /**
   * Looks at the policies that it stands beside, the penalty among them, when a guard is made.
   * @throws SluiceError when its options name an unknown policy
   */
  checkPolicies?(policies: readonly Policy[]): void
  /**
   * Returns whether it takes a request. It may also give the answer to a request that the
   * application must not see: over a limit, a request that was taken before.
   * @param decision what the limits say; `undefined` for a request that they do not apply to
   */
  takes(
    asked: AdmissionRequest<Native>,
    decision: Decision | undefined,
  ): MaybePromise<boolean | Taken>
  /** Takes a request, and answers it. */
  take(asked: AdmissionRequest<Native>): MaybePromise<Taken>
  /** Returns whether it depends on the client's preferences: caches have to know. */
  varies(request: HttpRequest): boolean
}

/** A request as admission sees it. */
export type AdmissionRequest<Native> = Pick<
  RequestContext<Native>,
  'native' | 'request' | 'settleAtEnd'
>

/** The answer to a request that was taken, or could not be. */
export interface Taken {
  readonly status: number
  readonly fields: readonly ResponseField[]
  readonly body: ResponseBody
  /**
   * Returns whether what the request took of the limits is given back: there was no room for it, or
   * something of ours failed. @default false
   */
  readonly givesBack?: boolean
  /**
   * Returns whether the request was taken now. Of those that overflow only such a one is answered
   * so, and one that failed for us; any other is refused. @default false
   */
  readonly isNew?: boolean
  /** Returns whether it was taken before, and is answered from that. @default false */
  readonly isKnown?: boolean
  /** There is no room for it now, but may be in this time. */
  readonly fullForMs?: number
}
