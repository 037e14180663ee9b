import type { Peeked } from '@sluice/http'
import type { GlobalOptions, RequestDecision, RouteOverride } from '@sluice/http/adapter'
import { type RequestKeys, requestKeys } from '@sluice/http/adapter'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** The decision of the request's last `rateLimitPlugin`; `undefined` if it was skipped. */
    rateLimit: RequestDecision | undefined
  }
  interface FastifyInstance {
    /**
     * Creates a hook for a route or for the not-found handler. Omitted options come from the
     * plugin. A string is the name of one of its policies.
     * @example
     * const perUser = { limit: 5, window: '1m', key: user((request) => request.user?.id) }
     * app.get('/orders', { preHandler: [authenticate, app.rateLimit(perUser)] }, orders)
     * app.setNotFoundHandler({ preHandler: app.rateLimit({ limit: 20, window: '1m' }) }, notFound)
     * @throws SluiceError if an option is unknown, missing or out of range
     */
    rateLimit(options?: RouteRateLimitOptions | string): RateLimitHook
    /** Returns the decision that a request would get from the plugin's limits. Takes nothing. */
    peekRateLimit(request: FastifyRequest, reply: FastifyReply): Promise<Peeked>
  }
  interface FastifyContextConfig {
    /** Limits that replace the plugin's on this route, or a policy's name; `false`: no limits. */
    rateLimit?: RouteRateLimitOptions | string | false | undefined
  }
}

/** Replies to a refused request, like a route handler. Status and headers are already set. */
export type RateLimitHandler = (
  request: FastifyRequest,
  reply: FastifyReply,
  decision: RequestDecision,
) => unknown

/** A hook that limits requests, for `onRequest`, `preParsing`, `preValidation` or `preHandler`. */
export type RateLimitHook = (
  request: FastifyRequest,
  reply: FastifyReply,
  ...rest: [done: HookHandlerDoneFunction] | [payload: unknown, done: HookHandlerDoneFunction]
) => void

/**
 * The limits of one route. Omitted options come from the plugin; policies replace the plugin's,
 * unless `combine` is 'add'.
 */
export type RouteRateLimitOptions = RouteOverride<FastifyRequest, RateLimitHandler>

/** Options of `rateLimitPlugin`. */
export type RateLimitPluginOptions = GlobalOptions<FastifyRequest, RateLimitHandler> & {
  /**
   * Hook in which requests are checked. `onRequest` runs before authentication, so login attempts
   * are limited too. The others run after all hooks of the same name, including those of the
   * route. @default 'onRequest'
   */
  hook?: 'onRequest' | 'preParsing' | 'preValidation' | 'preHandler' | undefined
  /** Limits all requests. `false`: only `routes` and `config.rateLimit` apply. @default true */
  global?: boolean | undefined
}

const keys: RequestKeys<FastifyRequest> = requestKeys()

export const all: typeof keys.all = keys.all
export const apiKey: typeof keys.apiKey = keys.apiKey
export const bearer: typeof keys.bearer = keys.bearer
export const firstOf: typeof keys.firstOf = keys.firstOf
export const tenant: typeof keys.tenant = keys.tenant
export const tiers: typeof keys.tiers = keys.tiers
export const user: typeof keys.user = keys.user
