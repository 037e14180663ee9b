import {
  createLimiter,
  type Duration,
  durationMs,
  isSluiceError,
  type Limiter,
  type Store,
  type Without,
} from '@sluice/core'
import type { Broker, RunJob, Settlement } from '../broker.ts'
import { type QueueObserver, teller } from '../event.ts'
import type { Job } from '../job.ts'
import { setUpWorker } from './options.ts'
import { RateGate } from './rate.ts'
import { type JobHandler, lastWordsMs, type RunSetup, runOnce } from './run.ts'

interface WorkerSettings<Payload, Result> {
  /** Where jobs come from. */
  broker: Broker
  /** Does a job. */
  handler: JobHandler<Payload, Result>
  /** Jobs that this worker runs at once: a whole number ≥ 1. @default 10 */
  concurrency?: number
  /** Runs that a job gets before it is a dead letter: a whole number ≥ 1. @default 5 */
  attempts?: number
  /** Before attempt n + 1 a job waits up to `base` · 2^(n − 1), and `max` at most, at random. @default { base: '1s', max: '5m' } */
  backoff?: { base?: Duration; max?: Duration }
  /** The longest that a run may take; then its signal is aborted, and it has failed. @default '5m' */
  timeout?: Duration
  /** How long a job stays with a worker that is not heard of any more, at most twice that. A second at least. Shared brokers only. @default '30s' */
  lease?: Duration
  /** The longest result, as JSON, in bytes. @default 1_000_000 */
  maxResultBytes?: number
  /** Told of what happens to jobs. */
  onEvent?: QueueObserver
}

interface RateOptions {
  /** Runs that all workers of the queue together may start in any window: a whole number ≥ 1. @default no limit */
  limit: number
  /** The window of `limit`: milliseconds, or a text such as `'1s'`. For a steady pace make it short: 1 in `'50ms'`, not 20 in `'1s'`. */
  window: Duration
  /** Where `limit` is counted: the Redis store for a broker that processes share. @default memoryStore(), for a broker of one process */
  store?: Store
}

/** A rate has both a limit and a window, or there is none. */
export type WorkerOptions<Payload = unknown, Result = unknown> = WorkerSettings<Payload, Result> &
  (RateOptions | Without<keyof RateOptions>)

export interface Worker {
  /** Jobs whose handler is under way. */
  readonly running: number
  /** Jobs that were taken, and wait for a unit of the rate. */
  readonly waiting: number
  /**
   * Takes no more jobs, waits for those that run, and returns those that wait for the rate. After `grace` the signals of the rest are
   * aborted, and what does not stop within a second is returned to the queue too. A broker that does not answer is waited for a second longer.
   */
  close(options?: CloseOptions): Promise<void>
}

export interface CloseOptions {
  /** How long running jobs are waited for. @default '10s' */
  grace?: Duration
}

/** How often a job may be lost with its worker before it is a dead letter: it may be what ends them. */
const mostInterruptions = 5

/** How soon a job is taken again whose broker could not note that it began. */
const brokerRetryMs = 1_000

/** How long a broker has to note what became of the last runs. */
const brokerPatienceMs = 1_000

/**
 * Runs the jobs of a queue. The workers of a queue together never start more than `limit` runs in any window, retries included.
 * @example
 * const worker = createWorker({ broker, store, limit: 20, window: '1s', handler: async ({ payload }) => render(payload) })
 * process.once('SIGTERM', () => worker.close())
 * @typeParam Payload what the queue's payloads are; nothing checks it at run time
 * @typeParam Result what the handler has to return
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createWorker<Payload = unknown, Result = unknown>(
  options: WorkerOptions<Payload, Result>,
): Worker {
  const setup = setUpWorker(options)
  const { broker, rate, concurrency, leaseMs } = setup
  const tell = teller(broker.name, options.onEvent)
  const runSetup: RunSetup = { ...setup, tell }
  const gate = new RateGate(rate && limiterOf(broker, rate))
  /** What tells each run that the worker cannot wait any longer. */
  const running = new Set<AbortController>()
  let isOver = false

  const run: RunJob = async (job, cancelled, delivery) => {
    const { interrupted, hasBegun } = delivery
    const isExpired = (): boolean => !hasBegun && isPast(job.expiresAt)
    if (isExpired()) return expire(job)
    if (interrupted >= mostInterruptions) return giveUp(job, interrupted)
    if (standsAside(interrupted)) {
      return { outcome: 'postponed', delayMs: Math.random() * leaseMs }
    }
    let isTooLate = false
    const begin = async (): Promise<void> => {
      isTooLate = isExpired()
      if (!isTooLate) await delivery.begin()
    }
    try {
      if (!(await gate.pass(cancelled, begin))) return notBegun(job, cancelled)
    } catch {
      // The broker has reported it. It fails, and not the job.
      return { outcome: 'postponed', delayMs: brokerRetryMs }
    }
    if (isTooLate) return expire(job)
    // While the broker noted that it begins.
    if (isOver || cancelled.aborted) return notBegun(job, cancelled)
    const shutDown = new AbortController()
    running.add(shutDown)
    try {
      return await runOnce(job, runSetup, { cancelled, shutDown: shutDown.signal })
    } finally {
      running.delete(shutDown)
    }
  }

  function notBegun({ id }: Job, cancelled: AbortSignal): Settlement {
    if (isSluiceError(cancelled.reason, 'SLUICE_LEASE_LOST')) return { outcome: 'returned' }
    const outcome = cancelled.aborted ? 'cancelled' : 'returned'
    return { outcome, onSettled: () => tell({ type: outcome, id }) }
  }

  function giveUp({ id, attempt }: Job, interrupted: number): Settlement {
    const error = new Error(`${interrupted} workers were lost while they ran it`)
    const onSettled = (): void => tell({ type: 'dead', id, attempt, runMs: 0, error })
    return { outcome: 'dead', error: error.message, onSettled }
  }

  function expire({ id, enqueuedAt }: Job): Settlement {
    const onSettled = (): void => tell({ type: 'expired', id, waitMs: Date.now() - enqueuedAt })
    return { outcome: 'expired', onSettled }
  }

  const work = broker.work(run, {
    concurrency,
    leaseMs,
    onStalled: (id) => tell({ type: 'stalled', id }),
  })

  return {
    get running() {
      return running.size
    },
    get waiting() {
      return gate.waiting
    },
    async close({ grace = '10s' } = {}) {
      const graceMs = durationMs(grace, 'grace')
      gate.close()
      const timer = setTimeout(() => {
        isOver = true
        const reason = new DOMException('the worker closes', 'AbortError')
        for (const shutDown of running) shutDown.abort(reason)
      }, graceMs)
      const patience = setTimeout(() => work.abandon(), graceMs + lastWordsMs + brokerPatienceMs)
      await work.close()
      clearTimeout(timer)
      clearTimeout(patience)
    },
  }
}

export interface Rate {
  readonly limit: number
  readonly window: Duration
  readonly store: Store
}

/** Jobs may wait, so while the store does not decide none starts: a limiter that guessed could exceed the rate. */
function limiterOf({ name }: Broker, { limit, window, store }: Rate): Limiter {
  return createLimiter({
    policies: [{ name: `queue.${name}`, limit, window }],
    store,
    failureMode: 'closed',
    deadlineMs: 1_000,
  })
}

function isPast(time: number | undefined): boolean {
  return time !== undefined && time <= Date.now()
}

/**
 * Whether a job waits again that was there when workers ended: jobs that were lost together come back together, and one of them may be what
 * ends workers. Apart from each other the others get done.
 */
function standsAside(interrupted: number): boolean {
  return interrupted > 1 && Math.random() < 0.5
}
