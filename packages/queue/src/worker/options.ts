import {
  durationMs,
  given,
  invalid,
  knownFields,
  memoryStore,
  SluiceError,
  timerMs,
  wholeNumber,
  windowMsOf,
} from '@sluice/core'
import { type Broker, brokerOf } from '../broker.ts'
import type { Backoff, RunSetup } from './run.ts'
import type { Rate, WorkerOptions } from './worker.ts'

/** The checked options of a worker, with the defaults filled in. */
export interface WorkerSetup extends Omit<RunSetup, 'tell'> {
  readonly broker: Broker
  readonly rate: Rate | undefined
  readonly concurrency: number
  readonly leaseMs: number
}

const workerFields: readonly (keyof WorkerOptions)[] = [
  'broker',
  'handler',
  'limit',
  'window',
  'store',
  'concurrency',
  'attempts',
  'backoff',
  'timeout',
  'lease',
  'maxResultBytes',
  'onEvent',
]

const shortestLeaseMs = 1_000

export function setUpWorker<Payload, Result>(options: WorkerOptions<Payload, Result>): WorkerSetup {
  knownFields(options, 'createWorker', workerFields)
  const { handler, onEvent } = options
  if (typeof handler !== 'function') {
    throw invalid({ option: 'handler' }, handler, 'a function of the job')
  }
  if (onEvent !== undefined && typeof onEvent !== 'function') {
    throw invalid({ option: 'onEvent' }, onEvent, 'a function')
  }
  const broker = brokerOf(options.broker)
  return {
    broker,
    handler,
    rate: rateOf(options, broker),
    concurrency: wholeNumber(
      given(options.concurrency, 10),
      { option: 'concurrency' },
      { min: 1, max: 10_000 },
    ),
    attempts: wholeNumber(
      given(options.attempts, 5),
      { option: 'attempts' },
      { min: 1, max: 1_000 },
    ),
    backoff: backoffOf(options.backoff),
    timeoutMs: timerMs(given(options.timeout, '5m'), 'timeout'),
    leaseMs: leaseOf(given(options.lease, '30s')),
    maxResultBytes: wholeNumber(
      given(options.maxResultBytes, 1_000_000),
      { option: 'maxResultBytes' },
      { min: 2 },
    ),
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
  return { limit: known, window: `${windowMs}ms`, store: store ?? memoryStore() }
}

function backoffOf(backoff: WorkerOptions['backoff'] = {}): Backoff {
  knownFields(backoff, 'backoff', ['base', 'max'])
  const { base = '1s', max = '5m' } = backoff
  const baseMs = durationMs(base, 'backoff.base')
  const maxMs = timerMs(max, 'backoff.max')
  if (baseMs <= maxMs) return { baseMs, maxMs }
  throw invalid({ option: 'backoff.base' }, base, 'at most backoff.max')
}

/** It is renewed every half of it, by a process that may be busy. */
function leaseOf(lease: unknown): number {
  const leaseMs = timerMs(lease, 'lease')
  if (leaseMs >= shortestLeaseMs) return leaseMs
  throw invalid({ option: 'lease' }, lease, "at least '1s'")
}
