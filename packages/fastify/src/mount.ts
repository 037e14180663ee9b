import { type Handler, type HandlerRequest, queryOf } from '@sluice/http/adapter'
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
      fastify.all(url, async (request, reply) => {
        const answer = await handler(new MountedRequest(request, fastify.prefix))
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

class MountedRequest extends RequestView implements HandlerRequest<FastifyRequest> {
  readonly native: FastifyRequest
  readonly #prefix: string

  constructor(native: FastifyRequest, prefix: string) {
    super(native)
    this.native = native
    this.#prefix = prefix
  }

  override get path(): string {
    return super.path.slice(this.#prefix.length) || '/'
  }

  get query(): URLSearchParams {
    return queryOf(this.native.url)
  }
}
