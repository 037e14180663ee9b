import {
  type GuardOptions,
  type MaybePromise,
  type RequestDecision,
  type RequestKeys,
  requestKeys,
} from '@sluice/http'
import type { FetchOptions } from './adapter/index.ts'

/** The part of a request that the application knows. */
export interface FetchInfo {
  /** The client's address, as the runtime tells it: no text that a client can send. */
  readonly remoteAddress?: string | undefined
  /** Keeps the runtime awake for the work after the response. @default it stays awake */
  waitUntil?(work: Promise<unknown>): void
}

/**
 * Answers requests. `decision` is that of the limiter around it; `undefined` when the request was
 * skipped.
 */
export type FetchHandler<Info> = (
  request: Request,
  info: Info,
  decision: RequestDecision | undefined,
) => MaybePromise<Response>

/** Replies to a refused request. The fields are added to its response. */
export type RateLimitHandler<Info = FetchInfo> = (
  request: Request,
  info: Info,
  decision: RequestDecision,
) => MaybePromise<Response>

/** Options of `rateLimit`. */
export type RateLimitOptions<Info = FetchInfo> = GuardOptions<Request, RateLimitHandler<Info>> &
  FetchOptions<[request: Request, info: Info]> & {
    /**
     * The route of the handler, such as `POST /login`: policies without a name are counted for it
     * alone, and `route()` finds it. @default the whole application
     */
    route?: string | undefined
  }

type Keys = RequestKeys<Request>
const keys: Keys = requestKeys()

export const all: Keys['all'] = keys.all
export const apiKey: Keys['apiKey'] = keys.apiKey
export const bearer: Keys['bearer'] = keys.bearer
export const firstOf: Keys['firstOf'] = keys.firstOf
export const tenant: Keys['tenant'] = keys.tenant
export const tiers: Keys['tiers'] = keys.tiers
export const user: Keys['user'] = keys.user
