import { type Handler, handlerRequest, throwingObjects } from '@sluice/http/adapter'
import type { Context, Middleware } from 'koa'
import { RequestView } from './context.ts'

/**
 * Middleware that serves a handler, under a path where one is given.
 * @example
 * app.use(mount(handler, '/limits'))
 */
export function mount(handler: Handler<Context>, prefix = ''): Middleware {
  return async function sluiceHandler(native, next) {
    if (!`${native.path}/`.startsWith(`${prefix}/`)) return next()
    const request = new RequestView(native)
    const reply = await throwingObjects(() =>
      handler(handlerRequest({ native, request, url: native.url, prefix })),
    )
    if (!reply) return next()
    native.status = reply.status
    for (const [name, value] of Object.entries(reply.headers ?? {})) native.set(name, value)
    const { body } = reply
    native.body = body === undefined || typeof body === 'string' ? body : Buffer.from(body)
  }
}
