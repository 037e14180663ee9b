import { hostname } from 'node:os'
import {
  checkedElsewhere,
  countOption,
  type Duration,
  durationMs,
  durationOption,
  invalid,
  knownFields,
  memoryStore,
  type Option,
  type OptionsOf,
  observersOption,
  orDefault,
  type RequiredOption,
  type SettingsOf,
  type Store,
  wholeNumber,
  windowMsOf,
  withoutRegions,
} from '@sluice/core'
import type { OutboundObservers } from './event.ts'
import type { Quota } from './fleet/quota-units.ts'

/** The options of `createOutbound`. */
export class OutboundTable {
  /**
   * Name of the third party. Processes with the same name and store share the quotas. Letters,
   * digits, `.`, `_` and `-`.
   */
  name: RequiredOption<string> = (name, option) => {
    if (typeof name === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(name)) return name
    throw invalid({ option }, name, "1 to 64 letters, digits, '.', '_' and '-'")
  }
  /** Quotas of the third party. Calls never exceed any of them. */
  limits: RequiredOption<readonly OutboundLimit[], readonly Quota[]> = quotasOf
  /**
   * Store that counts the units. Use the Redis store for a fleet.
   * @default memoryStore(): only this process
   */
  store?: Option<Store, Store> = (store) => withoutRegions(orDefault(store, memoryStore()))
  /** Maximum number of waiting calls in this process: a whole number ≥ 1. @default 1_000 */
  maxQueue?: Option<number, number> = countOption(1_000, { min: 1 })
  /** Maximum wait of a call. @default '1m' */
  maxWait?: Option<Duration, number> = durationOption('1m', durationMs)
  /**
   * Maximum run time of a call. After that, its signal is aborted and the call fails.
   * @default '1m'
   */
  timeout?: Option<Duration, number> = durationOption('1m', durationMs)
  /**
   * Time during which a failed call may still reach the third party. The call holds its units for
   * that time plus one window.
   * @default '5s'
   */
  lateArrival?: Option<Duration, number> = durationOption('5s', durationMs)
  /**
   * Maximum time for which a process holds back all calls after an outage or data loss of the
   * store. After a data loss, the longest window is used if it is shorter.
   * @default '20s'
   */
  recovery?: Option<Duration, number> = durationOption('20s', durationMs)
  /** Name of the caller in the audit trail. @default host name and process id */
  by?: Option<string, string> = (by) => orDefault(by, `${hostname()}:${process.pid}`)
  /** An object with `onEvent` or `onOutbound`, or a list of such objects. @default none */
  observers?: Option<
    OutboundObservers | readonly OutboundObservers[],
    readonly OutboundObservers[]
  > = observersOption<OutboundObservers>(['onEvent', 'onOutbound'])
}

/** Options of `createOutbound`. */
export interface OutboundOptions extends OptionsOf<OutboundTable> {}

/** A quota of the third party. */
export interface OutboundLimit {
  /** Units in any window: a whole number ≥ 1. */
  limit: number
  window: Duration
}

/** The options of a call. */
export class CallTable {
  /** Units that the call takes from every quota: a whole number ≥ 1. @default 1 */
  cost?: Option<number, number>
  /** Calls with a higher priority go first. @default 0 */
  priority?: Option<number, number> = (priority = 0, option) => {
    if (Number.isFinite(priority)) return priority
    throw invalid({ option }, priority, 'a number')
  }
  /** Cancels the waiting call, or aborts the signal of the running one. @default none */
  signal?: Option<AbortSignal> = checkedElsewhere
  /** Maximum run time of the call. @default the `timeout` of `createOutbound` */
  timeout?: Option<Duration, number>
  /** Name of the call in the audit trail. @default 'call' */
  label?: Option<string, string> = (label = 'call') => label

  /** A call cannot cost more than the smallest quota: it would wait forever. */
  constructor({ limits, timeout }: Pick<OutboundSetup, 'limits' | 'timeout'>) {
    const range = { min: 1, max: Math.min(...limits.map(({ limit }) => limit)) }
    this.cost = (cost = 1, option) =>
      wholeNumber(cost, { option, code: 'SLUICE_COST_INVALID' }, range)
    this.timeout = durationOption(timeout, durationMs)
  }
}

/** Options of a call. */
export interface CallOptions extends OptionsOf<CallTable> {}

/** A checked call. The `timeout` is in ms. */
export interface Call extends SettingsOf<CallTable> {}

/** Argument of the function that makes a call. */
export interface CallContext {
  /** Aborted with the `signal` in the options, and when the call takes too long. */
  readonly signal: AbortSignal
}

/** Options of `fetch` and of a call. */
export type OutboundFetchInit = RequestInit & Omit<CallOptions, 'signal'>

/** The calls to a third party, kept within its quotas. */
export interface Outbound {
  /** Calls that wait in this process. */
  readonly waiting: number
  /**
   * Calls `call` when the quotas have room, and resolves to its result. The function must make one
   * call, and settle when the answer arrives. If it rejects with an error without a `response`,
   * there was no answer. The result, or the error's `response`, is read as an answer if it has
   * `status` (or `statusCode`) and `headers`, as in axios, got and Octokit. It can pause the whole
   * fleet as with `fetch`.
   * @throws SluiceError `SLUICE_OUTBOUND_REFUSED` if too many calls wait, or this one waited too
   * long; `SLUICE_OUTBOUND_TIMEOUT` if it was made and did not settle in time; the reason of an
   * aborted signal
   */
  schedule<T>(call: (context: CallContext) => Promise<T>, options?: CallOptions): Promise<T>
  /**
   * Calls the global `fetch` when the quotas have room. The answer's Retry-After and RateLimit
   * fields pause the whole fleet.
   */
  fetch(input: string | URL | Request, init?: OutboundFetchInit): Promise<Response>
  /** Refuses the waiting calls. Calls in flight continue, and so does a pause. */
  close(): Promise<void>
}

/** The checked options, with defaults. Durations are in ms. */
export type OutboundSetup = SettingsOf<OutboundTable>

function quotasOf(limits: readonly OutboundLimit[]): readonly Quota[] {
  if (!Array.isArray(limits) || limits.length === 0 || limits.length > 8) {
    const legal = "an array of 1 to 8, such as [{ limit: 20, window: '1s' }]"
    throw invalid({ option: 'limits' }, limits, legal)
  }
  return limits.map((quota, index) => {
    const at = `limits[${index}]`
    knownFields(quota, at, ['limit', 'window'])
    const place = { option: `${at}.limit`, code: 'SLUICE_LIMIT_INVALID' } as const
    return {
      limit: wholeNumber(quota.limit, place, { min: 1 }),
      windowMs: windowMsOf(quota.window, `${at}.window`),
    }
  })
}
