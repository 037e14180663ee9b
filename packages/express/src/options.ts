import type { GuardOptions, RequestDecision } from '@sluice/http/adapter'
import type { NextFunction, Request, Response } from 'express'

declare global {
  // biome-ignore lint/style/noNamespace: how Express has its types extended
  namespace Express {
    interface Request {
      /** The decision of the last `rateLimit` of this request; `undefined` when it was skipped. */
      rateLimit?: RequestDecision | undefined
    }
  }
}

/** Replies to a refused request; status and headers are set already. */
export type RateLimitHandler = (
  request: Request,
  response: Response,
  next: NextFunction,
  decision: RequestDecision,
) => unknown

export type RateLimitOptions = GuardOptions<Request, RateLimitHandler> & {
  /**
   * The property of the request that has the decision: of several limiters on a request each may
   * have its own. @default 'rateLimit'
   */
  requestPropertyName?: string
}
