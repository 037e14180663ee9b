import type { ServerResponse } from 'node:http'
import type { MaybePromise } from '@sluice/core'
import type { HttpRequest } from '../request/exchange.ts'
import { throwingObjects } from './serve.ts'

/** A request to a mounted `Handler`. */
export interface MountedRequest extends HttpRequest {
  /**
   * The peer address of the connection, regardless of headers. `undefined` for a connection without
   * an address, such as a Unix socket.
   */
  readonly peer: string | undefined
}

/** A request as a `Handler` sees it. `path` is relative to the mount and begins with a slash. */
export interface HandlerRequest<Native = unknown> extends MountedRequest {
  /** The framework's request, for user functions. */
  readonly native: Native
  /** The URL's query. */
  readonly query: URLSearchParams
  /** The path as it was sent, including the mount path. */
  readonly originalPath: string
}

/** The response of a `Handler`. */
export interface HandlerResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/**
 * A small, framework-independent router, such as a status monitor; an adapter's `mount` puts it
 * under a path. `undefined` leaves the request to the next handler.
 * @typeParam Native the framework's request, if the handler needs it
 */
export type Handler<Native = unknown> = (
  request: HandlerRequest<Native>,
) => MaybePromise<HandlerResponse | undefined>

/** Answers through Node's response, with Content-Length: Node omits it for HEAD. */
export function sendByNode(
  response: ServerResponse,
  { status, headers = {}, body }: HandlerResponse,
): void {
  response.statusCode = status
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  if (body !== undefined) response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body)
}

/**
 * Calls a handler with a request.
 * @param prefix the mount path, if the view has the full path
 * @returns `undefined` for requests that the handler leaves alone, and for those outside its path
 */
export async function mountedReply<Native>(
  handler: Handler<Native>,
  { native, request }: { readonly native: Native; readonly request: MountedRequest },
  prefix = '',
): Promise<HandlerResponse | undefined> {
  const { method, path, route, peer, content } = request
  if (!`${path}/`.startsWith(`${prefix}/`)) return undefined
  const [originalPath = '', ...query] = (content?.url ?? path).split('?')
  const asked: HandlerRequest<Native> = {
    native,
    method,
    path: path.slice(prefix.length) || '/',
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
  return throwingObjects(() => handler(asked))
}

/**
 * Redirects from `/limits` to `/limits/`, so that relative URLs in a page work. The target is
 * relative too, so that it works behind a proxy.
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
