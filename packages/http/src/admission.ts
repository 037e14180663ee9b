import type { Readable } from 'node:stream'
import type { Decision, MaybePromise } from '@sluice/core'
import type { HttpRequest } from './http-request.ts'
import type { RejectBody } from './passage.ts'
import type { ResponseField } from './responses/http-response.ts'

/**
 * What may take requests over, such as a queue: they are answered before they are done, and go no further.
 * @typeParam Native the framework's request
 */
export interface Admission<Native> {
  /** Whether it takes a request. `decision`: what the limits say; `undefined` for one that they do not apply to. */
  takes(request: HttpRequest, decision: Decision | undefined): boolean
  /** Takes a request, and answers it. */
  take(native: Native, request: HttpRequest): MaybePromise<Taken>
  /** Whether the client's preferences decide if such a request is taken, so that caches have to know. */
  varies(request: HttpRequest): boolean
}

/** The answer to a request that was taken, or could not be: with a status from 400 on it counts against no limit. */
export interface Taken {
  readonly status: number
  readonly fields: readonly ResponseField[]
  readonly body: RejectBody
  /** There is no room for it now, but may be in this time. */
  readonly fullForMs?: number
}

/** What admission asks of requests, which not every adapter may show. */
export interface RequestContent {
  /** As it was sent, with the query. */
  readonly url: string
  /** What a body parser made of the body, if one has run. */
  readonly parsed: unknown
  /** The body as it comes. */
  readonly stream: Readable
}
