import {
  type GuardOptions,
  type RequestDecision,
  type RequestKeys,
  requestKeys,
} from '@sluice/http/adapter'
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

/** Options of `rateLimit`. */
export type RateLimitOptions = GuardOptions<Request, RateLimitHandler> & {
  /**
   * The property of the request that has the decision: of several limiters on a request each may
   * have its own. @default 'rateLimit'
   */
  requestPropertyName?: string | undefined
}

type Keys = RequestKeys<Request>
const keys: Keys = requestKeys()

export const all: Keys['all'] = keys.all
export const apiKey: Keys['apiKey'] = keys.apiKey
export const bearer: Keys['bearer'] = keys.bearer
export const firstOf: Keys['firstOf'] = keys.firstOf
export const tenant: Keys['tenant'] = keys.tenant
export const tiers: Keys['tiers'] = keys.tiers
export const user: Keys['user'] = keys.user
