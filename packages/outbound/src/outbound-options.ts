import type { Duration, Store } from '@sluice/core'
import type { OutboundObserver } from './outbound-event.ts'

export interface OutboundOptions {
  /** Names the third party: processes that use one name and one store share its quotas. Letters, digits, `.`, `_` and `-`. */
  name: string
  /** Its quotas: all of them hold. */
  limits: readonly OutboundLimit[]
  /** Where slots are counted: the Redis store for a fleet. @default memoryStore(): this process alone */
  store?: Store
  /** Calls that may wait at once in this process: a whole number ≥ 1. @default 1_000 */
  maxQueue?: number
  /** The longest that a call waits. @default '1m' */
  maxWait?: Duration
  /** The longest that a call takes once it is made: then its signal is aborted, and it has failed. @default '1m' */
  timeout?: Duration
  /** How long after it failed a call may still reach the third party: it holds its units until then, and a window more. @default '5s' */
  lateArrival?: Duration
  /**
   * The longest that a process permits nothing after the store was away or has lost its data. After lost data the longest window is enough,
   * where that is shorter.
   * @default '20s'
   */
  recovery?: Duration
  /** Who calls, for the audit trail. @default host name and process id */
  by?: string
  /** Told of every call, and of what was not called. */
  onEvent?: OutboundObserver
}

export interface OutboundLimit {
  /** Units in any window: a whole number ≥ 1. */
  limit: number
  window: Duration
}

export interface CallOptions {
  /** Units of every quota that the call takes: a whole number ≥ 1. @default 1 */
  cost?: number
  /** The higher goes first. @default 0 */
  priority?: number
  /** Aborted: the call does not wait any more, or is told to stop. */
  signal?: AbortSignal
  /** The longest that the call takes once it is made. @default that of the outbound */
  timeout?: Duration
  /** What is called, for the audit trail. @default 'call' */
  label?: string
}

export interface CallContext {
  /** Aborted with that of the options, and when the call has taken too long. */
  readonly signal: AbortSignal
}

export type OutboundFetchInit = RequestInit & Omit<CallOptions, 'signal'>

export interface Outbound {
  /** Calls that wait in this process. */
  readonly waiting: number
  /**
   * Calls `call` when the quotas have room for it, and gives what it gives. It has to be one call, and to settle when the answer is there. If it
   * rejects with an error that has no `response`, there was no answer. What it gives, or the error's `response`, holds up the whole fleet as with
   * `fetch`, where it has `status` (or `statusCode`) and `headers`, as with axios, got and Octokit.
   * @throws SluiceError `SLUICE_OUTBOUND_REFUSED` when too many wait, or it waited too long; `SLUICE_OUTBOUND_TIMEOUT` when it was made and did
   * not settle in time; the signal's reason when that is aborted
   */
  schedule<T>(call: (context: CallContext) => Promise<T>, options?: CallOptions): Promise<T>
  /** As the global `fetch`, in its turn. The answer's Retry-After and RateLimit fields hold up the whole fleet. */
  fetch(input: string | URL | Request, init?: OutboundFetchInit): Promise<Response>
  /** Refuses what waits. What is under way goes on, and a pause that the third party has asked for too. */
  close(): Promise<void>
}
