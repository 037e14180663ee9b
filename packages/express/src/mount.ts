import { andThen } from '@sluice/http'
import { continueWith, type Handler, handlerRequest, sendByNode } from '@sluice/http/adapter'
import type { Request, RequestHandler } from 'express'
import { RequestView } from './context.ts'

/**
 * Middleware that serves a handler under a path.
 * @example
 * app.use('/limits', mount(handler))
 */
export function mount(handler: Handler<Request>): RequestHandler {
  return function sluiceHandler(native, response, next) {
    const request = handlerRequest({ native, request: new RequestView(native), url: native.url })
    continueWith(next, () =>
      andThen(handler(request), (reply) => {
        if (reply) sendByNode(response, reply)
        return reply === undefined
      }),
    )
  }
}
