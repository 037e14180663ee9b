import type { CallInfo, Fetch, KeyFunction } from './calls/call.ts'
import {
  boundOption,
  countOption,
  flagOption,
  functionOption,
  listOption,
  msOption,
  type Option,
  type OptionsOf,
  readOptions,
  type SettingsOf,
} from './option-checks.ts'
import { processWide } from './runtime/process-wide.ts'

/** The options of `createFetch`. */
class ClientTable {
  /** Sends the requests. @default the global `fetch`, looked up for each request */
  fetch?: Option<Fetch> = functionOption
  /** Maximum number of retries of a call: 0 or more. @default 4 */
  retries?: Option<number, number> = countOption(4)
  /** Maximum single wait (ms). Beyond that, the call returns the response. @default 60,000 */
  maxWaitMs?: Option<number, number> = boundOption(60_000)
  /** Maximum total wait of a call (ms), not counting the requests themselves. @default 180,000 */
  maxTotalWaitMs?: Option<number, number> = boundOption(180_000)
  /** Upper bound of the first random backoff (ms). Each further try doubles it. @default 500 */
  backoffMs?: Option<number, number> = msOption(500)
  /** Maximum backoff (ms), and maximum jitter on a wait that the server sends. @default 30,000 */
  maxBackoffMs?: Option<number, number> = msOption(30_000)
  /**
   * Maximum random time (ms) added to a wait that the server sends, or a tenth of that wait if
   * longer. Each further refusal doubles the maximum.
   * @default 250
   */
  jitterMs?: Option<number, number> = msOption(250)
  /**
   * Methods that may be retried. Others need an `Idempotency-Key`.
   * @default GET, HEAD, OPTIONS, TRACE, QUERY, PUT, DELETE
   */
  methods?: Option<readonly string[], ReadonlySet<string>> = (given, option) =>
    new Set(repeatable(given, option).map((method) => method.toUpperCase()))
  /**
   * Statuses after which a call is retried. If the server sends a wait, also 403, 409 and 413.
   * @default 408, 425, 429, 500, 502, 503, 504
   */
  statuses?: Option<readonly number[], ReadonlySet<number>> = (given, option) =>
    new Set(retried(given, option))
  /** Spreads the second half of a quota over the rest of its window. @default false */
  pace?: Option<boolean, boolean> = flagOption(false)
  /**
   * Identity of a call: calls with the same string share limits; a call with `undefined` shares
   * none. Set it if another header identifies the client, or if a default one differs in each
   * request. @default the origin with the `Authorization`, `X-API-Key` and `Cookie` of the call
   */
  key?: Option<KeyFunction, KeyFunction> = (key = defaultKey, option) => functionOption(key, option)
  /** An object with `onWait`, `onWaited` or `onGiveUp`, or a list of such objects. @default none */
  observers?: Option<ClientObservers | readonly ClientObservers[], readonly ClientObservers[]> = (
    given = [],
    option,
  ) => observerList([given].flat(), option)
}

/** Options of `createFetch`. */
export interface ClientOptions extends OptionsOf<ClientTable> {}

/** Observer of waits. An error in a method is reported once as a warning, and affects no call. */
export interface ClientObservers {
  /** Called before every wait. */
  onWait?: ((event: WaitEvent) => void) | undefined
  /** Called after every wait, also one that the caller's signal has ended. */
  onWaited?: ((event: WaitedEvent) => void) | undefined
  /** Called when a call is not retried although its answer suggests it. */
  onGiveUp?: ((event: GiveUpEvent) => void) | undefined
}

/** All options, checked. */
export type Settings = SettingsOf<ClientTable>

/** Checks all options, and fills in defaults. */
export function readClientOptions(options: ClientOptions): Settings {
  return readOptions(new ClientTable(), options, 'createFetch')
}

const repeatable = listOption(
  ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY', 'PUT', 'DELETE'],
  'the names of methods',
  (item) => typeof item === 'string' && /^[!#$%&'*+.^_`|~\w-]+$/.test(item),
)

const retried = listOption(
  [408, 425, 429, 500, 502, 503, 504],
  'the statuses from 400 to 599',
  (item) => Number.isInteger(item) && Number(item) >= 400 && Number(item) <= 599,
)

const observerList = listOption<ClientObservers>(
  [],
  'the objects with functions onWait, onWaited or onGiveUp',
  isObserver,
)

function isObserver(item: unknown): boolean {
  if (typeof item !== 'object' || item === null) return false
  const present = ['onWait', 'onWaited', 'onGiveUp']
    .map((method): unknown => Reflect.get(item, method))
    .filter((found) => found !== undefined)
  return present.length > 0 && present.every((found) => typeof found === 'function')
}

/** The default key. Clients with the same key function share limits, so there is only one. */
const defaultKey = processWide('@sluice/client/default-key/1', () => keyOfUser)

function keyOfUser({ url, headers }: CallInfo): string {
  const identity = ['Authorization', 'X-API-Key', 'Cookie'].map((name) => headers.get(name))
  return JSON.stringify([url.origin, ...identity])
}

/** A wait of a call: reason and duration. */
export interface WaitEvent {
  /**
   * `server`: the server refused this call and said when to come back. `backoff`: a try failed
   * without a wait from the server. `held`: an answer to another call had a wait, other calls wait
   * in front, or pacing slows the call down.
   */
  readonly reason: 'server' | 'backoff' | 'held'
  /** Duration (ms) of the wait from now, with jitter. A held call may wait longer. */
  readonly waitMs: number
  readonly method: string
  readonly url: string
  /** Requests that this call has sent so far. */
  readonly tries: number
  /** Names of the policies that the call waits for, with `;pk=…` for partitions. */
  readonly policies: readonly string[]
  /** The last answer to this call, whose body must not be read: the call may still return it. */
  readonly response: Response | undefined
}

/** A wait that is over. */
export interface WaitedEvent extends WaitEvent {
  /** Actual duration of the wait (ms). */
  readonly waitedMs: number
}

/** A call that could have been retried, but was not. */
export interface GiveUpEvent extends Pick<WaitEvent, 'method' | 'url' | 'tries' | 'response'> {
  /**
   * `tries`: `retries` is used up. `wait`: the wait is longer than `maxWaitMs`, or than the rest of
   * `maxTotalWaitMs`. `unsafe`: the method must not be repeated, or the body cannot be sent again.
   * `cost`: the request costs more than a whole limit, so no wait lets it pass.
   */
  readonly reason: 'tries' | 'wait' | 'unsafe' | 'cost'
  /** The wait that was too long, in milliseconds. */
  readonly waitMs: number | undefined
}

const thrown = processWide('@sluice/client/thrown/1', () => new Set<string>())

/** Notifies all observers. An error is reported once as a warning, and affects no call. */
export function tell(
  observers: readonly ClientObservers[],
  observe: (observer: ClientObservers) => unknown,
): void {
  const report = (error: unknown): void => {
    if (thrown.has('observer')) return
    thrown.add('observer')
    console.warn('sluice: an observer threw:', error)
  }
  for (const observer of observers) {
    try {
      // For TypeScript, an async function is assignable to one that returns nothing.
      void Promise.resolve(observe(observer)).catch(report)
    } catch (error) {
      report(error)
    }
  }
}
