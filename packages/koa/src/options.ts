import type { GuardOptions, RequestDecision } from '@sluice/http/adapter'
import type { Context, Next } from 'koa'

declare module 'koa' {
  interface DefaultContext {
    /** The decision of the last `rateLimit` of this request; `undefined` when it was skipped. */
    rateLimit?: RequestDecision | undefined
  }
}

/** Replies to a refused request; status and headers are set already. */
export type RateLimitHandler = (context: Context, next: Next, decision: RequestDecision) => unknown

export type RateLimitOptions = GuardOptions<Context, RateLimitHandler>
