import { ExpressContext } from '@sluice/express/adapter'
import { FastifyContext } from '@sluice/fastify/adapter'
import type { HttpExchange } from './options.ts'

/** One request and its response, as the adapter of its platform shows them. */
export type PlatformContext = ExpressContext | FastifyContext

/** Both platforms of Nest are recognised by their responses, since either may be given. */
export function platformOf({ request, response }: HttpExchange): PlatformContext {
  return 'raw' in response
    ? new FastifyContext(request as never, response as never, '')
    : new ExpressContext(request as never, response as never)
}
