import type {
  GuardOptions,
  GuardSettings,
  NoPolicies,
  RequestDecision,
  RouteOverride,
} from '@sluice/http'
import type { FastifyReply, FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** What the last `rateLimitPlugin` of this request decided; `undefined` when it was skipped. */
    rateLimit: RequestDecision | undefined
  }
  interface FastifyContextConfig {
    /** Limits of this route alone, or the name of a policy of the plugin's, in place of the plugin's; `false`: none. */
    rateLimit?: RouteRateLimitOptions | string | false
  }
}

/** Replies to a refused request; status and headers are set already. What it returns is sent, as from a route's handler. */
export type RateLimitHandler = (
  request: FastifyRequest,
  reply: FastifyReply,
  decision: RequestDecision,
) => unknown

/** The limits of one route. What it leaves out is as in the plugin's options; policies of its own replace the plugin's, unless `combine` is 'add'. */
export type RouteRateLimitOptions = RouteOverride<FastifyRequest, RateLimitHandler>

export const hooks = ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const

interface PluginSettings {
  /**
   * When requests are decided. What functions of the request see depends on it: the user from `preValidation` on if that is
   * where it is authenticated, the body too.
   * @default 'onRequest'
   */
  hook?: (typeof hooks)[number]
  /** Whether every request is limited, those for unknown URLs too; else only those that `routes` or `config.rateLimit` name. @default true */
  global?: boolean
}

/** Routes may bring all policies themselves, where nothing else is limited. */
type RoutesAlone = GuardSettings<FastifyRequest, RateLimitHandler> & NoPolicies & { global: false }

export type RateLimitPluginOptions = PluginSettings &
  (GuardOptions<FastifyRequest, RateLimitHandler> | RoutesAlone)
