import type { Peeked } from '@sluice/http'
import {
  type GuardOptions,
  type GuardSettings,
  type NoPolicies,
  type RequestDecision,
  type RequestKeys,
  type RouteOverride,
  requestKeys,
} from '@sluice/http/adapter'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The decision of the last `rateLimitPlugin` of this request; `undefined` when it was skipped.
     */
    rateLimit: RequestDecision | undefined
  }
  interface FastifyInstance {
    /**
     * Makes a hook that limits requests, for the hooks of a route, behind others of its own, or for
     * the not-found handler. Options that are left out are as in the plugin's; a text is the name
     * of a policy there.
     * @example
     * const perUser = { limit: 5, window: '1m', key: user((request) => request.user?.id) }
     * app.get('/orders', { preHandler: [authenticate, app.rateLimit(perUser)] }, orders)
     * app.setNotFoundHandler({ preHandler: app.rateLimit({ limit: 20, window: '1m' }) }, notFound)
     * @throws SluiceError when an option is unknown, missing or out of range
     */
    rateLimit(options?: RouteRateLimitOptions | string): RateLimitHook
    /**
     * Answers what the plugin's own limits would give a request, by its own key, limit and cost.
     * Takes nothing.
     */
    peekRateLimit(request: FastifyRequest, reply: FastifyReply): Promise<Peeked>
  }
  interface FastifyContextConfig {
    /**
     * Limits of this route alone, or the name of a policy of the plugin's, in place of the
     * plugin's; `false`: none.
     */
    rateLimit?: RouteRateLimitOptions | string | false | undefined
  }
}

/**
 * Replies to a refused request; status and headers are set already. Its return value is sent, as
 * from a route's handler.
 */
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

export const hooks = ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const

interface PluginSettings {
  /**
   * The hook in which requests are decided. `onRequest` comes before the hooks of a route, so that
   * attempts to authenticate are limited too. The others run last: behind all hooks of that name,
   * those of the instance and of the route, so that keys and limits see the user.
   * @default 'onRequest'
   */
  hook?: (typeof hooks)[number] | undefined
  /**
   * Tells whether every request is limited, those for unknown URLs too; else only those that
   * `routes` or `config.rateLimit` name. @default true
   */
  global?: boolean | undefined
}

/** Routes may bring all policies themselves, where nothing else is limited. */
type RoutesAlone = GuardSettings<FastifyRequest, RateLimitHandler> & NoPolicies & { global: false }

/** Options of `rateLimitPlugin`. */
export type RateLimitPluginOptions = PluginSettings &
  (GuardOptions<FastifyRequest, RateLimitHandler> | RoutesAlone)

type Keys = RequestKeys<FastifyRequest>
const keys: Keys = requestKeys()

export const all: Keys['all'] = keys.all
export const apiKey: Keys['apiKey'] = keys.apiKey
export const bearer: Keys['bearer'] = keys.bearer
export const firstOf: Keys['firstOf'] = keys.firstOf
export const tenant: Keys['tenant'] = keys.tenant
export const tiers: Keys['tiers'] = keys.tiers
export const user: Keys['user'] = keys.user
