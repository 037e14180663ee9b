import type { MaybePromise } from '@sluice/core'
import type { HttpRequest } from './request.ts'

/**
 * A request as a `Handler` sees it: `path` is relative to where the handler is mounted, and begins
 * with a slash.
 */
export interface HandlerRequest<Native = unknown> extends HttpRequest {
  /** The framework's request, for functions of the user's. */
  readonly native: Native
  /** The query of the URL. */
  readonly query: URLSearchParams
}

export interface HandlerResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/**
 * A small router that knows no framework, such as a status monitor; the adapters' `mount` puts it
 * under a path. `undefined` leaves the request to what comes after it.
 * @typeParam Native the framework's request, where the handler needs to know it
 */
export type Handler<Native = unknown> = (
  request: HandlerRequest<Native>,
) => MaybePromise<HandlerResponse | undefined>

/** A view of a request, and the request that it shows. */
interface Mounted<Native> {
  readonly native: Native
  readonly request: HttpRequest
}

/**
 * Makes the request that a handler is given.
 * @param prefix the path under which the handler is mounted, where the view has the whole path
 */
export function handlerRequest<Native extends { readonly url: string }>(
  { native, request }: Mounted<Native>,
  prefix = '',
): HandlerRequest<Native> {
  return {
    native,
    method: request.method,
    path: request.path.slice(prefix.length) || '/',
    query: new URLSearchParams(native.url.split('?').slice(1).join('?')),
    get route() {
      return request.route
    },
    get ip() {
      return request.ip
    },
    header: (name) => request.header(name),
    ...(request.content && { content: request.content }),
  }
}
