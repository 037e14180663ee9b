import type { GuardOptions, RequestDecision, RequestKeys } from '@sluice/http/adapter'
import { requestKeys } from '@sluice/http/adapter'
import type { Context, Next } from 'koa'

declare module 'koa' {
  interface DefaultContext {
    /** The decision of the last `rateLimit` of this request; `undefined` if it was skipped. */
    rateLimit?: RequestDecision | undefined
  }
}

/** Replies to a refused request; status and headers are already set. */
export type RateLimitHandler = (context: Context, next: Next, decision: RequestDecision) => unknown

/** Options of `rateLimit`. */
export type RateLimitOptions = GuardOptions<Context, RateLimitHandler>

const keys: RequestKeys<Context> = requestKeys()

export const all: typeof keys.all = keys.all
export const apiKey: typeof keys.apiKey = keys.apiKey
export const bearer: typeof keys.bearer = keys.bearer
export const firstOf: typeof keys.firstOf = keys.firstOf
export const tenant: typeof keys.tenant = keys.tenant
export const tiers: typeof keys.tiers = keys.tiers
export const user: typeof keys.user = keys.user
