import type { MaybePromise } from '@sluice/core'
import type { HttpRequest } from '../request/request.ts'

/** A request as a `Handler` sees it. `path` is relative to its mount, and begins with a slash. */
export interface HandlerRequest<Native = unknown> extends HttpRequest {
  /** The framework's request, for functions of the user's. */
  readonly native: Native
  /** The query of the URL. */
  readonly query: URLSearchParams
  /** The path as it was sent, with the path under which the handler is mounted. */
  readonly originalPath: string
  /**
   * The address of the other end of the connection, independent of headers. `undefined` for a
   * connection without an address, such as a Unix socket.
   */
  readonly peer: string | undefined
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

interface Mounted<Native> {
  readonly native: Native
  readonly request: HttpRequest
}

interface NativeRequest {
  readonly url: string
  readonly originalUrl: string
  readonly socket: { readonly remoteAddress?: string | undefined }
}

interface Sent {
  readonly url: string
  readonly originalUrl: string
  /** See `HandlerRequest`. */
  readonly peer: () => string | undefined
}

/** Makes a handler's request. @param prefix the path of the mount, if the view has all of it */
export function handlerRequest<Native extends NativeRequest>(
  mounted: Mounted<Native>,
  prefix = '',
): HandlerRequest<Native> {
  const { native } = mounted
  const { url, originalUrl } = native
  return handlerRequestOf(
    mounted,
    { url, originalUrl, peer: () => native.socket.remoteAddress },
    prefix,
  )
}

/** `handlerRequest` for frameworks whose requests are of another form. */
export function handlerRequestOf<Native>(
  { native, request }: Mounted<Native>,
  { url, originalUrl, peer }: Sent,
  prefix: string,
): HandlerRequest<Native> {
  return {
    native,
    method: request.method,
    path: request.path.slice(prefix.length) || '/',
    query: new URLSearchParams(url.split('?').slice(1).join('?')),
    originalPath: originalUrl.split('?', 1)[0] ?? '',
    get peer() {
      return peer()
    },
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
