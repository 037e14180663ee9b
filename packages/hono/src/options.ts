import type { FetchOptions, FetchReply } from '@sluice/fetch/adapter'
import type { GuardOptions, RequestDecision, RequestKeys } from '@sluice/http'
import { requestKeys } from '@sluice/http'
import type { Context, Next } from 'hono'

declare module 'hono' {
  interface ContextVariableMap {
    /** The decision of this request's last `rateLimit`; `undefined` if it was skipped. */
    rateLimit: RequestDecision | undefined
  }
}

/** Replies to a refused request. The headers are already set. */
export type RateLimitHandler = FetchReply<[context: Context, next: Next]>

/** Options of `rateLimit`. */
export type RateLimitOptions = GuardOptions<Context, RateLimitHandler> &
  FetchOptions<[context: Context]>

const keys: RequestKeys<Context> = requestKeys()

export const all: typeof keys.all = keys.all
export const apiKey: typeof keys.apiKey = keys.apiKey
export const bearer: typeof keys.bearer = keys.bearer
export const firstOf: typeof keys.firstOf = keys.firstOf
export const tenant: typeof keys.tenant = keys.tenant
export const tiers: typeof keys.tiers = keys.tiers
export const user: typeof keys.user = keys.user
