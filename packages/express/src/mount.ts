import { andThen, type MaybePromise } from '@sluice/http'
import {
  continueWith,
  type Handler,
  type HandlerRequest,
  type HandlerResponse,
  queryOf,
} from '@sluice/http/adapter'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { RequestView } from './context.ts'

/**
 * Middleware that serves a handler under a path.
 * @example
 * app.use('/limits', mount(handler))
 */
export function mount(handler: Handler<Request>): RequestHandler {
  /** Whether the handler leaves the request to what comes after it. */
  function serve(req: Request, res: Response): MaybePromise<boolean> {
    return andThen(handler(new MountedRequest(req)), (reply) => {
      if (reply) send(res, reply)
      return reply === undefined
    })
  }

  return function sluiceHandler(req: Request, res: Response, next: NextFunction): void {
    continueWith(next, () => serve(req, res))
  }
}

class MountedRequest extends RequestView implements HandlerRequest<Request> {
  readonly native: Request

  constructor(native: Request) {
    super(native)
    this.native = native
  }

  get query(): URLSearchParams {
    return queryOf(this.native.url)
  }
}

function send(res: Response, { status, headers = {}, body }: HandlerResponse): void {
  res.status(status)
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
  // Node finds out the length of what it sends: of the answer to a HEAD, nothing.
  if (body !== undefined) res.setHeader('Content-Length', Buffer.byteLength(body))
  res.end(body)
}
