import type { MaybePromise } from '@sluice/core'
import type { HttpRequest } from '../request/exchange.ts'

/** A request at the place where a `Handler` is mounted. */
export interface MountedRequest extends HttpRequest {
  /**
   * The address of the other end of the connection, independent of headers. `undefined` for a
   * connection without an address, such as a Unix socket.
   */
  readonly peer: string | undefined
}

/** A request as a `Handler` sees it. `path` is relative to its mount, and begins with a slash. */
export interface HandlerRequest<Native = unknown> extends MountedRequest {
  /** The framework's request, for functions of the user's. */
  readonly native: Native
  /** The query of the URL. */
  readonly query: URLSearchParams
  /** The path as it was sent, with the path under which the handler is mounted. */
  readonly originalPath: string
}

/** The response of a `Handler`. */
export interface HandlerResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/**
 * A small router that knows no framework, such as a status monitor; the adapters' `mount` puts it
 * under a path. `undefined` leaves the request to the next handler.
 * @typeParam Native the framework's request, where the handler needs to know it
 */
export type Handler<Native = unknown> = (
  request: HandlerRequest<Native>,
) => MaybePromise<HandlerResponse | undefined>

interface WritableResponse {
  statusCode: number
  setHeader(name: string, value: number | string): unknown
  end(body?: string | Uint8Array): unknown
}

/** Answers by Node's response, with the length of the body: Node sends none to a HEAD. */
export function sendByNode(
  response: WritableResponse,
  { status, headers = {}, body }: HandlerResponse,
): void {
  response.statusCode = status
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  if (body !== undefined) response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body)
}

/** Makes a handler's request. @param prefix the path of the mount, if the view has all of it */
export function handlerRequest<Native>(
  { native, request }: { readonly native: Native; readonly request: MountedRequest },
  prefix = '',
): HandlerRequest<Native> {
  const { method, route, peer, content } = request
  const [originalPath = '', ...query] = (content?.url ?? request.path).split('?')
  return {
    native,
    method,
    path: request.path.slice(prefix.length) || '/',
    query: new URLSearchParams(query.join('?')),
    originalPath,
    peer,
    route,
    get ip() {
      return request.ip
    },
    header: (name) => request.header(name),
    content,
  }
}

/**
 * Redirects from `/limits` to `/limits/`, so that the relative URLs of a page are right. The
 * address is relative too, so that it is right behind a proxy.
 * @returns `undefined` for all other requests
 */
export function slashRedirect({
  path,
  originalPath,
  query,
}: HandlerRequest): HandlerResponse | undefined {
  if (path !== '/' || originalPath.endsWith('/')) return undefined
  const last = originalPath.slice(originalPath.lastIndexOf('/') + 1)
  const search = query.size === 0 ? '' : `?${query}`
  return { status: 308, headers: { Location: `./${last}/${search}` } }
}
