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

export type RateLimitOptions = GuardOptions<Request, RateLimitHandler> & {
  /**
   * The property of the request that has the decision: of several limiters on a request each may
   * have its own. @default 'rateLimit'
   */
  requestPropertyName?: string
}

type Keys = RequestKeys<Request>
const keys: Keys = requestKeys()

/** The user whom something before has authenticated: `user((req) => req.user?.id)`. */
export const user: Keys['user'] = keys.user
/** The tenant on whose account a request is made: `tenant((req) => req.tenant?.id)`. */
export const tenant: Keys['tenant'] = keys.tenant
/** An API key. **Anybody can make up API keys**: `apiKey({ verify: (key) => issued.has(key) })`. */
export const apiKey: Keys['apiKey'] = keys.apiKey
/** A bearer token. **Anybody can make up tokens**: give `verify`, or refuse unknown ones before. */
export const bearer: Keys['bearer'] = keys.bearer
/** Several identities as one, such as account and address; missing when any of them is. */
export const all: Keys['all'] = keys.all
/** The first identity that a request has: `firstOf(apiKey({ verify }), ip())`. */
export const firstOf: Keys['firstOf'] = keys.firstOf
/** A limit for each tier: `tiers({ free: 100, default: 60 }, (req) => req.user?.plan)`. */
export const tiers: Keys['tiers'] = keys.tiers
