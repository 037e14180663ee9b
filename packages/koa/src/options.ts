import type { GuardOptions, RequestDecision } from '@sluice/http/adapter'
import type { Context, Next } from 'koa'

declare module 'koa' {
  interface DefaultContext {
    /** What the last `rateLimit` of this request decided; `undefined` when it was skipped. */
    rateLimit?: RequestDecision | undefined
  }
}

/** Replies to a refused request; status and headers are set already. */
export type RateLimitHandler = (context: Context, next: Next, decision: RequestDecision) => unknown

export type RateLimitOptions = GuardOptions<Context, RateLimitHandler>
