import {
  type Duration,
  durationMs,
  invalid,
  knownFields,
  memoryStore,
  orDefault,
  SluiceError,
  type Store,
  timerMs,
  type Without,
  wholeNumber,
  windowMsOf,
  withoutRegions,
} from '@sluice/core'
import { type Broker, brokerOf } from '../broker.ts'
import { whole } from '../checks.ts'
import { checkObservers, type QueueObserverOptions } from '../event.ts'
import type { Backoff, JobHandler, RunSetup } from './run.ts'

interface WorkerSettings<Payload, Result> extends QueueObserverOptions {
  /** Broker that the worker takes jobs from. */
  broker: Broker
  /** Does a job. */
  handler: JobHandler<Payload, Result>
  /** Jobs that this worker runs at once: a whole number ≥ 1. @default 10 */
  concurrency?: number | undefined
  /** Runs that a job gets before it is a dead letter: a whole number ≥ 1. @default 5 */
  attempts?: number | undefined
  /**
   * Before attempt n + 1 a job waits a random time up to `base` · 2^(n − 1), and `max` at most.
   * @default { base: '1s', max: '5m' }
   */
  backoff?: { base?: Duration | undefined; max?: Duration | undefined } | undefined
  /**
   * The longest that a run may take; then its signal is aborted, and it has failed.
   * @default '5m'
   */
  timeout?: Duration | undefined
  /**
   * Time after which a job of a silent worker runs elsewhere; at most twice that. At least a
   * second. Shared brokers only.
   * @default '30s'
   */
  lease?: Duration | undefined
  /** The longest result, as JSON, in bytes. @default 1_000_000 */
  maxResultBytes?: number | undefined
}

interface RateOptions {
  /**
   * Runs that all workers of the queue together may start in any window: a whole number ≥ 1.
   * @default no limit
   */
  limit: number
  /**
   * The window of `limit`: milliseconds, or a text such as `'1s'`. For a steady pace make it short:
   * 1 in `'50ms'`, not 20 in `'1s'`.
   */
  window: Duration
  /**
   * Store that counts `limit`: the Redis store for a broker that processes share.
   * @default memoryStore(), for a broker of one process
   */
  store?: Store | undefined
}

/** A rate has both a limit and a window, or there is none. */
export type WorkerOptions<Payload = unknown, Result = unknown> = WorkerSettings<Payload, Result> &
  (RateOptions | Without<keyof RateOptions>)

export interface Rate {
  readonly limit: number
  readonly window: Duration
  readonly store: Store
}

/** The checked options of a worker, with the defaults filled in. */
export interface WorkerSetup extends Omit<RunSetup, 'emit'> {
  readonly broker: Broker
  readonly rate: Rate | undefined
  readonly concurrency: number
  readonly leaseMs: number
}

const workerFields: readonly (keyof WorkerOptions)[] = [
  ...(['broker', 'handler', 'limit', 'window', 'store', 'concurrency', 'attempts'] as const),
  ...(['backoff', 'timeout', 'lease', 'maxResultBytes', 'onEvent', 'observers'] as const),
]

const minLeaseMs = 1_000

export function setUpWorker<Payload, Result>(options: WorkerOptions<Payload, Result>): WorkerSetup {
  knownFields(options, 'createWorker', workerFields)
  const { handler } = options
  if (typeof handler !== 'function') {
    throw invalid({ option: 'handler' }, handler, 'a function of the job')
  }
  checkObservers(options)
  const broker = brokerOf(options.broker)
  return {
    broker,
    handler,
    rate: rateOf(options, broker),
    concurrency: whole(options, 'concurrency', { otherwise: 10, min: 1, max: 10_000 }),
    attempts: whole(options, 'attempts', { otherwise: 5, min: 1, max: 1_000 }),
    backoff: backoffOf(options.backoff),
    timeoutMs: timerMs(orDefault(options.timeout, '5m'), 'timeout'),
    leaseMs: leaseOf(orDefault(options.lease, '30s')),
    maxResultBytes: whole(options, 'maxResultBytes', { otherwise: 1_000_000, min: 2 }),
  }
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
      'store must be given beside limit, as in store: redisStore(redis): other processes run jobs of this broker too, and ' +
        'each would have the whole limit to itself',
    )
  }
  return { limit: known, window: `${windowMs}ms`, store: withoutRegions(store) ?? memoryStore() }
}

function backoffOf(backoff: WorkerOptions['backoff'] = {}): Backoff {
  knownFields(backoff, 'backoff', ['base', 'max'])
  const { base = '1s', max = '5m' } = backoff
  const baseMs = durationMs(base, 'backoff.base')
  const maxMs = timerMs(max, 'backoff.max')
  if (baseMs <= maxMs) return { baseMs, maxMs }
  throw invalid({ option: 'backoff.base' }, base, 'at most backoff.max')
}

/** Checks the lease. The worker renews it twice in its time, and may be busy. */
function leaseOf(lease: unknown): number {
  const leaseMs = timerMs(lease, 'lease')
  if (leaseMs >= minLeaseMs) return leaseMs
  throw invalid({ option: 'lease' }, lease, "at least '1s'")
}
