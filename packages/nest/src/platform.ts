import { ExpressContext } from '@sluice/express/adapter'
import { FastifyContext } from '@sluice/fastify/adapter'
import type { HttpExchange } from './options.ts'

/** One request and its response, as the adapter of its platform shows them. */
export type PlatformContext = ExpressContext | FastifyContext

type OfExpress = ConstructorParameters<typeof ExpressContext>
type OfFastify = ConstructorParameters<typeof FastifyContext>

/** Both platforms of Nest are recognised by their responses, since either may be given. */
export function platformOf({ request, response }: HttpExchange): PlatformContext {
  return 'raw' in response
    ? new FastifyContext(request as OfFastify[0], response as OfFastify[1], '')
    : new ExpressContext(request as OfExpress[0], response as OfExpress[1])
}
