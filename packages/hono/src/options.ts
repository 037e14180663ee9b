import type { FetchOptions } from '@sluice/fetch/adapter'
import {
  type GuardOptions,
  type MaybePromise,
  type RequestDecision,
  type RequestKeys,
  requestKeys,
} from '@sluice/http'
import type { Context, Next } from 'hono'

declare module 'hono' {
  interface ContextVariableMap {
    /** The decision of the last `rateLimit` of this request; `undefined` when it was skipped. */
    rateLimit: RequestDecision | undefined
  }
}

/** Replies to a refused request; the headers are set already. */
export type RateLimitHandler = (
  context: Context,
  next: Next,
  decision: RequestDecision,
) => MaybePromise<Response>

/** Options of `rateLimit`. */
export type RateLimitOptions = GuardOptions<Context, RateLimitHandler> &
  FetchOptions<[context: Context]>

type Keys = RequestKeys<Context>
const keys: Keys = requestKeys()

export const all: Keys['all'] = keys.all
export const apiKey: Keys['apiKey'] = keys.apiKey
export const bearer: Keys['bearer'] = keys.bearer
export const firstOf: Keys['firstOf'] = keys.firstOf
export const tenant: Keys['tenant'] = keys.tenant
export const tiers: Keys['tiers'] = keys.tiers
export const user: Keys['user'] = keys.user
