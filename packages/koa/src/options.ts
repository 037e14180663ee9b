import {
  type GuardOptions,
  type RequestDecision,
  type RequestKeys,
  requestKeys,
} from '@sluice/http/adapter'
import type { Context, Next } from 'koa'

declare module 'koa' {
  interface DefaultContext {
    /** The decision of the last `rateLimit` of this request; `undefined` when it was skipped. */
    rateLimit?: RequestDecision | undefined
  }
}

/** Replies to a refused request; status and headers are set already. */
export type RateLimitHandler = (context: Context, next: Next, decision: RequestDecision) => unknown

/** Options of `rateLimit`. */
export type RateLimitOptions = GuardOptions<Context, RateLimitHandler>

type Keys = RequestKeys<Context>
const keys: Keys = requestKeys()

export const all: Keys['all'] = keys.all
export const apiKey: Keys['apiKey'] = keys.apiKey
export const bearer: Keys['bearer'] = keys.bearer
export const firstOf: Keys['firstOf'] = keys.firstOf
export const tenant: Keys['tenant'] = keys.tenant
export const tiers: Keys['tiers'] = keys.tiers
export const user: Keys['user'] = keys.user
