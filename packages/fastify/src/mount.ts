import { type Handler, handlerRequest } from '@sluice/http/adapter'
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { RequestView } from './context.ts'

/**
 * A plugin that serves a handler under a path.
 * @example
 * app.register(mount(handler), { prefix: '/limits' })
 */
export function mount(handler: Handler<FastifyRequest>): FastifyPluginAsync {
  return async function sluiceHandler(fastify) {
    for (const url of ['/', '/*']) {
      fastify.all(url, async (native, reply) => {
        const request = new RequestView(native)
        const { prefix } = fastify
        const answer = await handler(handlerRequest({ native, request, url: native.url, prefix }))
        if (!answer) return reply.callNotFound()
        return (
          reply
            .code(answer.status)
            .headers(answer.headers ?? {})
            // To a text Fastify would add a charset, which problem+json does not have.
            .send(typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body)
        )
      })
    }
  }
}
