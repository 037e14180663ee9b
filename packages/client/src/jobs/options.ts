import { createFetch } from '../create-fetch.ts'
import { bound, duration, flag, onlyKnown, optionalFunction, webUrl } from '../option-checks.ts'
import type { Filled } from '../options.ts'

/** Options of `waitFor`. */
export interface WaitForOptions {
  /** Sends the polls. @default createFetch(), with a 500 as an answer: the job has failed */
  fetch?: typeof globalThis.fetch | undefined
  /** Headers of each poll, for a monitor of the same origin as the answer only. @default none */
  headers?: RequestInit['headers'] | undefined
  /** Ends the waiting. @default none */
  signal?: AbortSignal | undefined
  /**
   * Wait (ms) before each poll if the server tells none; it grows by half each time, up to 30 s.
   * @default 1000
   */
  intervalMs?: number | undefined
  /** Longest wait in all (ms), polls included, before a `StillPendingError`. @default 600,000 */
  maxWaitMs?: number | undefined
  /** Base of a relative monitor, and origin of the answer. @default the URL of the answer */
  baseUrl?: string | URL | undefined
  /** Throws if the monitor has another origin than the answer. @default true */
  sameOrigin?: boolean | undefined
  /**
   * Tells whether an answer of the monitor means that the job is not done.
   * @default a 202, a 429, a 200 or 503 with `Retry-After`, or a 200 whose JSON has the `status`
   * 'pending' or 'running'
   */
  isPending?: ((response: Response) => boolean | Promise<boolean>) | undefined
  /** Called with every answer of a job that is not done. The body is cancelled after the call. */
  onPending?: ((response: Response) => void) | undefined
}

/** All options, checked. */
export interface WaitForSettings
  extends Filled<Pick<WaitForOptions, 'fetch' | 'intervalMs' | 'maxWaitMs' | 'sameOrigin'>> {
  readonly headers: Headers | undefined
  readonly signal: AbortSignal | undefined
  readonly baseUrl: string | undefined
  readonly isPending: WaitForOptions['isPending']
  readonly onPending: WaitForOptions['onPending']
}

/** Checks all options, and puts their defaults in. */
export function readWaitForOptions(options: WaitForOptions): WaitForSettings {
  return onlyKnown(options, { where: 'waitFor', read })
}

function read(options: WaitForOptions): WaitForSettings {
  return {
    fetch: optionalFunction(options.fetch, 'fetch') ?? createFetch({ statuses: retriedStatuses }),
    headers: options.headers && new Headers(options.headers),
    signal: options.signal,
    intervalMs: duration(options.intervalMs, 'intervalMs', 1000),
    maxWaitMs: bound(options.maxWaitMs, 'maxWaitMs', 600_000),
    baseUrl: webUrl(options.baseUrl, 'baseUrl'),
    sameOrigin: flag(options.sameOrigin, 'sameOrigin', true),
    isPending: optionalFunction(options.isPending, 'isPending'),
    onPending: optionalFunction(options.onPending, 'onPending'),
  }
}

/** Statuses after which a poll is repeated. A 500 is not: it means that the job failed. */
const retriedStatuses = [408, 425, 429, 502, 503, 504]
