import type { MaybePromise } from '@sluice/core'
import type { HttpRequest } from './request.ts'

/** A request as a `Handler` sees it: `path` is relative to where the handler is mounted, and begins with a slash. */
export interface HandlerRequest<Native = unknown> extends HttpRequest {
  /** The framework's request, for functions of the user's. */
  readonly native: Native
  /** What follows the question mark. */
  readonly query: URLSearchParams
}

export interface HandlerResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/**
 * A small router that knows no framework, such as a status monitor; the adapters' `mount` puts it under a path.
 * `undefined` leaves the request to what comes after it.
 * @typeParam Native the framework's request, where the handler needs to know it
 */
export type Handler<Native = unknown> = (
  request: HandlerRequest<Native>,
) => MaybePromise<HandlerResponse | undefined>

/** What follows the question mark in a URL as it was sent. */
export function queryOf(url: string): URLSearchParams {
  return new URLSearchParams(url.split('?').slice(1).join('?'))
}
