import type { Fetch } from '../calls/call.ts'
import { createFetch } from '../create-fetch.ts'
import {
  boundOption,
  flagOption,
  functionOption,
  msOption,
  type Option,
  type OptionsOf,
  type SettingsOf,
  webUrl,
} from '../option-checks.ts'

/** The options of `waitFor`. */
export class WaitForTable {
  /** Sends the polls. @default createFetch() without retries of a 500, which means a failed job */
  fetch?: Option<Fetch, Fetch> = (fetch, option) =>
    functionOption(fetch, option) ?? createFetch({ statuses: retriedStatuses })
  /** Headers of each poll, if the monitor and the response have the same origin. @default none */
  headers?: Option<NonNullable<RequestInit['headers']>, Headers | undefined> = (headers) =>
    headers && new Headers(headers)
  /** Cancels the wait. @default none */
  signal?: Option<AbortSignal> = (signal) => signal
  /**
   * Wait (ms) before each poll if the server does not send one. The wait grows by half each time,
   * up to 30 s. @default 1000
   */
  intervalMs?: Option<number, number> = msOption(1000)
  /** Maximum total wait (ms), including polls, before a `StillPendingError`. @default 600,000 */
  maxWaitMs?: Option<number, number> = boundOption(600_000)
  /** Base of a relative monitor URL, and origin of the response. @default the response's URL */
  baseUrl?: Option<string | URL, string | undefined> = webUrl
  /** Throws if the monitor and the response have different origins. @default true */
  sameOrigin?: Option<boolean, boolean> = flagOption(true)
  /**
   * Returns whether a response from the monitor means that the job is not done.
   * @default a 202, a 429, a 200 or 503 with `Retry-After`, or a 200 whose JSON has the `status`
   * 'pending' or 'running'
   */
  isPending?: Option<(response: Response) => boolean | Promise<boolean>> = functionOption
  /** Called with each response for a job that is not done. The body is cancelled afterwards. */
  onPending?: Option<(response: Response) => void> = functionOption
}

/** Options of `waitFor`. */
export interface WaitForOptions extends OptionsOf<WaitForTable> {}

export type WaitForSettings = SettingsOf<WaitForTable>

/** Statuses after which a poll is repeated. A 500 is not: it means that the job failed. */
const retriedStatuses = [408, 425, 429, 502, 503, 504]
