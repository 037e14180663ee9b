import { type Handler, type HandlerRequest, queryOf, throwingObjects } from '@sluice/http/adapter'
import type { Context, Middleware } from 'koa'
import { RequestView } from './context.ts'

/**
 * Middleware that serves a handler, under a path where one is given.
 * @example
 * app.use(mount(handler, '/limits'))
 */
export function mount(handler: Handler<Context>, prefix = ''): Middleware {
  return async function sluiceHandler(context, next) {
    const isUnder = `${context.path}/`.startsWith(`${prefix}/`)
    const request = new MountedRequest(context, prefix)
    const reply = isUnder ? await throwingObjects(() => handler(request)) : undefined
    if (!reply) return next()
    context.status = reply.status
    for (const [name, value] of Object.entries(reply.headers ?? {})) context.set(name, value)
    const { body } = reply
    context.body = body === undefined || typeof body === 'string' ? body : Buffer.from(body)
  }
}

class MountedRequest extends RequestView implements HandlerRequest<Context> {
  readonly #prefix: string

  constructor(native: Context, prefix: string) {
    super(native)
    this.#prefix = prefix
  }

  override get path(): string {
    return super.path.slice(this.#prefix.length) || '/'
  }

  get query(): URLSearchParams {
    return queryOf(this.native.url)
  }
}
