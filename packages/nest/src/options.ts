import type { ExecutionContext } from '@nestjs/common'
import type { GlobalOptions, RequestDecision, RouteOverride } from '@sluice/http/adapter'
import { type RequestKeys, requestKeys } from '@sluice/http/adapter'

/**
 * Creates the exception for a refusal, such as a `WsException`; `undefined`: a
 * `RateLimitException`. The headers are already set.
 */
export type RateLimitHandler = (context: ExecutionContext, decision: RequestDecision) => unknown

/** HTTP request and response, as provided by the platform (Express or Fastify). */
export interface HttpExchange {
  readonly request: object
  readonly response: object
}

interface ModuleSettings {
  /**
   * Limits every handler. If `false`, only those with `@RateLimit` or in `routes` are limited.
   * @default true
   */
  global?: boolean | undefined
  /**
   * Finds the HTTP request behind another kind of context, such as GraphQL's. Sluice needs its
   * address and headers, and the end of the response. @default none: only keys are available
   */
  exchangeOf?: ((context: ExecutionContext) => HttpExchange | undefined) | undefined
}

/** Options of `RateLimitModule.forRoot`. */
export type RateLimitModuleOptions = ModuleSettings &
  GlobalOptions<ExecutionContext, RateLimitHandler>

/**
 * The limits of one handler, or of all handlers of a controller together. Omitted options come from
 * the module; policies replace the module's, unless `combine` is 'add'.
 */
export type HandlerRateLimit = RouteOverride<ExecutionContext, RateLimitHandler>

const keys: RequestKeys<ExecutionContext> = requestKeys()

export const all: typeof keys.all = keys.all
export const apiKey: typeof keys.apiKey = keys.apiKey
export const bearer: typeof keys.bearer = keys.bearer
export const firstOf: typeof keys.firstOf = keys.firstOf
export const tenant: typeof keys.tenant = keys.tenant
export const tiers: typeof keys.tiers = keys.tiers
export const user: typeof keys.user = keys.user
