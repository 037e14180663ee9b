import type { Decision, GuardOptions } from '@sluice/http'
import type { FastifyReply, FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** What `rateLimitPlugin` decided last on this request; `undefined` when it was skipped. */
    rateLimit: Decision | undefined
  }
  interface FastifyContextConfig {
    /** Limits of this route alone, in place of the plugin's; `false`: none. */
    rateLimit?: RouteRateLimitOptions | false
  }
}

/** Replies to a refused request; status and headers are set already. What it returns is sent, as from a route's handler. */
export type RateLimitHandler = (
  request: FastifyRequest,
  reply: FastifyReply,
  decision: Decision,
) => unknown

/** The limits of one route. What it leaves out is as in the plugin's options; policies of its own replace the plugin's. */
export type RouteRateLimitOptions = GuardOptions<FastifyRequest, RateLimitHandler>

export const hooks = ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const

export interface RateLimitPluginOptions extends RouteRateLimitOptions {
  /**
   * When requests are decided. What functions of the request see depends on it: the user from `preValidation` on if that is
   * where it is authenticated, the body too.
   * @default 'onRequest'
   */
  hook?: (typeof hooks)[number]
  /** Whether every request is limited, those for unknown URLs too; else only routes with `config.rateLimit`. @default true */
  global?: boolean
}
