import type { Peeked } from '@sluice/http'
import type { GlobalOptions, RequestDecision, RouteOverride } from '@sluice/http/adapter'
import { type RequestKeys, requestKeys } from '@sluice/http/adapter'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** The decision of the request's last `rateLimitPlugin`; `undefined` when it was skipped. */
    rateLimit: RequestDecision | undefined
  }
  interface FastifyInstance {
    /**
     * Makes a hook of a route or of the not-found handler. Options that are left out are as in the
     * plugin's; a text is the name of a policy there.
     * @example
     * const perUser = { limit: 5, window: '1m', key: user((request) => request.user?.id) }
     * app.get('/orders', { preHandler: [authenticate, app.rateLimit(perUser)] }, orders)
     * app.setNotFoundHandler({ preHandler: app.rateLimit({ limit: 20, window: '1m' }) }, notFound)
     * @throws SluiceError when an option is unknown, missing or out of range
     */
    rateLimit(options?: RouteRateLimitOptions | string): RateLimitHook
    /** Answers what the plugin's own limits would give a request. Takes nothing. */
    peekRateLimit(request: FastifyRequest, reply: FastifyReply): Promise<Peeked>
  }
  interface FastifyContextConfig {
    /** Limits of this route in place of the plugin's, or a policy's name; `false`: none. */
    rateLimit?: RouteRateLimitOptions | string | false | undefined
  }
}

/** Replies to a refused request, as a route's handler does; status and headers are set already. */
export type RateLimitHandler = (
  request: FastifyRequest,
  reply: FastifyReply,
  decision: RequestDecision,
) => unknown

/** A hook that limits requests: `onRequest`, `preParsing`, `preValidation` or `preHandler`. */
export type RateLimitHook = (
  request: FastifyRequest,
  reply: FastifyReply,
  ...rest: [done: HookHandlerDoneFunction] | [payload: unknown, done: HookHandlerDoneFunction]
) => void

/**
 * The limits of one route. Options that it leaves out are as in the plugin's; policies of its own
 * replace the plugin's, unless `combine` is 'add'.
 */
export type RouteRateLimitOptions = RouteOverride<FastifyRequest, RateLimitHandler>

/** Options of `rateLimitPlugin`. */
export type RateLimitPluginOptions = GlobalOptions<FastifyRequest, RateLimitHandler> & {
  /**
   * Hook in which requests are checked. `onRequest` comes before authentication, so that login
   * attempts are limited too. The others run after all hooks of that name, including those of the
   * route. @default 'onRequest'
   */
  hook?: 'onRequest' | 'preParsing' | 'preValidation' | 'preHandler' | undefined
  /** Limits all requests, not only those that `routes` or `config.rateLimit` name. @default true */
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
