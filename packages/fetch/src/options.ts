import type { GuardOptions, RequestDecision, RequestKeys } from '@sluice/http'
import { requestKeys } from '@sluice/http'
import type { FetchInfo, FetchOptions, FetchReply } from './adapter/index.ts'

/** The arguments of a fetch handler. */
export type FetchCall<Info> = [request: Request, info: Info]

/** Handles a request. `decision` comes from the limiter; `undefined` if it was skipped. */
export type FetchHandler<Info> = FetchReply<FetchCall<Info>, RequestDecision | undefined>

/** Replies to a refused request. The headers are added to its response. */
export type RateLimitHandler<Info = FetchInfo> = FetchReply<FetchCall<Info>>

/** Options of `rateLimit`. */
export type RateLimitOptions<Info = FetchInfo> = GuardOptions<Request, RateLimitHandler<Info>> &
  FetchOptions<FetchCall<Info>> & {
    /**
     * The handler's route, such as `POST /login`. Unnamed policies count separately for this
     * route, and the key `route()` returns it. @default the whole application
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
