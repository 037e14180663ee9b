import {
  checkedElsewhere,
  countOption,
  type Duration,
  durationMs,
  durationOption,
  invalid,
  memoryStore,
  type Option,
  type OptionsOf,
  objectOption,
  type RequiredOption,
  readOptions,
  type SettingsOf,
  SluiceError,
  type Store,
  timerMs,
  type Without,
  wholeNumber,
  windowMsOf,
  withoutRegions,
} from '@sluice/core'
import { type Broker, brokerOf } from '../broker.ts'
import { QueueObserverTable } from '../event.ts'
import type { Backoff, JobHandler } from './run.ts'

/** The options of `createWorker`. */
class WorkerTable<Payload, Result> extends QueueObserverTable {
  /** Broker that supplies the jobs. */
  broker: RequiredOption<Broker> = brokerOf
  /** Runs a job. */
  handler: RequiredOption<JobHandler<Payload, Result>> = (handler, option) => {
    if (typeof handler === 'function') return handler
    throw invalid({ option }, handler, 'a function of the job')
  }
  /** Jobs that this worker runs at once: a whole number ≥ 1. @default 10 */
  concurrency?: Option<number, number> = countOption(10, { min: 1, max: 10_000 })
  /** Number of runs before a job becomes a dead letter: a whole number ≥ 1. @default 5 */
  attempts?: Option<number, number> = countOption(5, { min: 1, max: 1_000 })
  /**
   * Before attempt n + 1, a job waits a random time up to `base` · 2^(n − 1), but at most `max`.
   * @default { base: '1s', max: '5m' }
   */
  backoff?: Option<OptionsOf<BackoffTable>, Backoff> = backoffOf
  /**
   * Maximum duration of a run. After that, the run's signal is aborted and the run fails.
   * @default '5m'
   */
  timeout?: Option<Duration, number> = durationOption('5m', timerMs)
  /**
   * Time after which the job of a silent worker runs elsewhere; up to twice that in practice. At
   * least a second. Shared brokers only.
   * @default '30s'
   */
  lease?: Option<Duration, number> = durationOption('30s', leaseMsOf)
  /** Maximum size of a result as JSON, in bytes. @default 1_000_000 */
  maxResultBytes?: Option<number, number> = countOption(1_000_000, { min: 2 })
}

class BackoffTable {
  /** Maximum wait before the second attempt: at most `max`. @default '1s' */
  base?: Option<Duration, number> = durationOption('1s', durationMs)
  /** Maximum wait before any attempt. @default '5m' */
  max?: Option<Duration, number> = durationOption('5m', timerMs)
}

/** Both or neither: a rate has a limit and a window. */
class RateTable {
  limit?: Option<number> = checkedElsewhere
  window?: Option<Duration> = checkedElsewhere
  store?: Option<Store> = checkedElsewhere
}

interface RateOptions {
  /**
   * Runs that all workers of the queue together may start in any window: a whole number ≥ 1.
   * @default no limit
   */
  limit: number
  /** Window of `limit`. For a steady pace, use a short window: 1 in `'50ms'`, not 20 in `'1s'`. */
  window: Duration
  /**
   * Store of the counts. A broker shared by several processes needs the Redis store.
   * @default memoryStore(), for a single-process broker
   */
  store?: Store | undefined
}

/** A rate has both a limit and a window. */
export type WorkerOptions<Payload = unknown, Result = unknown> = OptionsOf<
  WorkerTable<Payload, Result>
> &
  (RateOptions | Without<keyof RateOptions>)

export interface Rate {
  readonly limit: number
  readonly window: Duration
  readonly store: Store
}

/** The checked options of a worker, with the defaults filled in. Durations are in ms. */
export interface WorkerSetup extends SettingsOf<WorkerTable<never, unknown>> {
  readonly rate: Rate | undefined
}

export function setUpWorker<Payload, Result>(options: WorkerOptions<Payload, Result>): WorkerSetup {
  const table = { ...new WorkerTable<Payload, Result>(), ...new RateTable() }
  const settings = readOptions(table, options, 'createWorker')
  return { ...settings, rate: rateOf(settings, settings.broker) }
}

function rateOf(
  { limit, window, store }: Pick<WorkerOptions, 'limit' | 'window' | 'store'>,
  { isShared }: Broker,
): Rate | undefined {
  if (limit === undefined && window === undefined) {
    if (store === undefined) return undefined
    throw invalid({ option: 'store' }, store, 'left out without limit and window')
  }
  const known = wholeNumber(limit, { option: 'limit', code: 'SLUICE_LIMIT_INVALID' }, { min: 1 })
  const windowMs = windowMsOf(window, 'window')
  if (store === undefined && isShared) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      'store is required with limit, as in store: redisStore(redis): other processes run jobs of this broker too, and ' +
        'each would use the whole limit',
    )
  }
  return { limit: known, window: `${windowMs}ms`, store: withoutRegions(store) ?? memoryStore() }
}

function backoffOf(given: OptionsOf<BackoffTable> | undefined, option: string): Backoff {
  const { base: baseMs, max: maxMs } = objectOption(new BackoffTable())(given, option)
  if (baseMs <= maxMs) return { baseMs, maxMs }
  throw invalid({ option: `${option}.base` }, given?.base, `at most ${option}.max`)
}

/** Checks the lease. The worker renews it twice per lease time, and may be busy. */
function leaseMsOf(lease: unknown, option: string): number {
  const leaseMs = timerMs(lease, option)
  if (leaseMs >= 1_000) return leaseMs
  throw invalid({ option }, lease, "at least '1s'")
}
