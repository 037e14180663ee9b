import type { GuardOptions, RequestDecision, RequestKeys } from '@sluice/http'
import { requestKeys } from '@sluice/http'
import type { FetchInfo, FetchOptions, FetchReply } from './adapter/index.ts'

/**
 * Answers requests. `decision` is that of the limiter around it; `undefined` when the request was
 * skipped.
 */
export type FetchHandler<Info> = FetchReply<
  [request: Request, info: Info],
  RequestDecision | undefined
>

/** Replies to a refused request. The fields are added to its response. */
export type RateLimitHandler<Info = FetchInfo> = FetchReply<[request: Request, info: Info]>

/** Options of `rateLimit`. */
export type RateLimitOptions<Info = FetchInfo> = GuardOptions<Request, RateLimitHandler<Info>> &
  FetchOptions<[request: Request, info: Info]> & {
    /**
     * Route of the handler, such as `POST /login`. Policies without a name count separately for
     * this route, which the key `route()` returns. @default the whole application
     */
    route?: string | undefined
  }

const keys: RequestKeys<Request> = requestKeys()

export const all: typeof keys.all = keys.all
export const apiKey: typeof keys.apiKey = keys.apiKey
export const bearer: typeof keys.bearer = keys.bearer
export const firstOf: typeof keys.firstOf = keys.firstOf
export const tenant: typeof keys.tenant = keys.tenant
export const tiers: typeof keys.tiers = keys.tiers
export const user: typeof keys.user = keys.user
