import { ExpressContext } from '@sluice/express/adapter'
import { FastifyContext } from '@sluice/fastify/adapter'
import type { HttpExchange } from './options.ts'

/** One request and its response, as the platform's adapter exposes them. */
export type PlatformContext = ExpressContext | FastifyContext

/** Recognises the platform by the response, since it may be either one. */
export function platformOf({ request, response }: HttpExchange): PlatformContext {
  return 'raw' in response
    ? new FastifyContext(request as never, response as never, '')
    : new ExpressContext(request as never, response as never)
}
