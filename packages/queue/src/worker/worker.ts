import { createLimiter, type Duration, durationMs, isSluiceError, type Limiter } from '@sluice/core'
import type { Broker, RunJob, Settlement } from '../broker.ts'
import { emitterOf } from '../event.ts'
import type { Job } from '../job.ts'
import { type Rate, setUpWorker, type WorkerOptions } from './options.ts'
import { startRateOf } from './rate.ts'
import { type RunSetup, runOnce, stopGraceMs } from './run.ts'

/** A worker that runs the jobs of a queue. */
export interface Worker {
  /** Jobs whose handler is running. */
  readonly running: number
  /** Jobs that were taken and wait for a unit of the rate. */
  readonly waiting: number
  /**
   * Takes no more jobs, waits for the running ones, and puts back jobs that wait for the rate.
   * After `grace` it aborts the signals of the rest. A run that does not stop within a second is
   * put back too. A broker that does not answer gets one more second.
   */
  close(options?: CloseOptions): Promise<void>
}

/** Options of `close`. */
export interface CloseOptions {
  /** Time that `close` waits for running jobs. @default '10s' */
  grace?: Duration | undefined
}

/** Number of lost workers after which a job becomes a dead letter: it may be the cause. */
const maxInterruptions = 5

/** Delay (ms) of a job if the broker could not record that its run begins. */
const brokerRetryMs = 1_000

/** Time (ms) that the broker has to store the settlements of the last runs. */
const brokerPatienceMs = 1_000

/**
 * Runs the jobs of a queue. The workers of a queue together never start more than `limit` runs in
 * any window, retries included.
 * @example
 * const handler = async ({ payload }) => render(payload)
 * const worker = createWorker({ broker, store, limit: 20, window: '1s', handler })
 * process.once('SIGTERM', () => worker.close())
 * @typeParam Payload the type of the queue's payloads; nothing checks it at run time
 * @typeParam Result the type that the handler must return
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function createWorker<Payload = unknown, Result = unknown>(
  options: WorkerOptions<Payload, Result>,
): Worker {
  const setup = setUpWorker(options)
  const { broker, rate, concurrency, timeout: timeoutMs, lease: leaseMs } = setup
  const emit = emitterOf(broker, setup.observers)
  const runSetup: RunSetup = { ...setup, timeoutMs, emit }
  const startRate = startRateOf(rate && limiterOf(broker, rate), broker.maxHeldMs)
  /** Controllers that stop the runs when the worker cannot wait any longer. */
  const running = new Set<AbortController>()
  let isOver = false

  const run: RunJob = async (job, cancelled, delivery) => {
    const { interrupted, hasBegun } = delivery
    const isExpired = (): boolean => !hasBegun && isPast(job.expiresAt)
    if (isExpired()) return expire(job)
    if (interrupted >= maxInterruptions) return giveUp(job, interrupted)
    if (runsLater(interrupted)) {
      return { outcome: 'postponed', delayMs: Math.random() * leaseMs }
    }
    let isTooLate = false
    const begin = async (): Promise<void> => {
      isTooLate = isExpired()
      if (!isTooLate) await delivery.begin()
    }
    try {
      const pass = await startRate.pass(cancelled, begin)
      if (pass.outcome === 'refused') return notBegun(job, cancelled)
      if (pass.outcome === 'later') {
        return { outcome: 'postponed', delayMs: pass.delayMs, pausesWorker: true }
      }
    } catch {
      // The broker has reported the error, which is not the job's.
      return { outcome: 'postponed', delayMs: brokerRetryMs }
    }
    if (isTooLate) return expire(job)
    // The worker may have closed while the broker recorded the run.
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
    return { outcome, onSettled: () => emit({ type: outcome, id }) }
  }

  function giveUp({ id, attempt }: Job, interrupted: number): Settlement {
    const error = new Error(`${interrupted} workers were lost while running it`)
    const onSettled = (): void => emit({ type: 'dead', id, attempt, runMs: 0, error })
    return { outcome: 'dead', error: error.message, onSettled }
  }

  function expire({ id, enqueuedAt }: Job): Settlement {
    const onSettled = (): void => emit({ type: 'expired', id, waitMs: Date.now() - enqueuedAt })
    return { outcome: 'expired', onSettled }
  }

  const work = broker.work(run, {
    ...{ concurrency, leaseMs, timeoutMs: timeoutMs },
    onStalled: (id) => emit({ type: 'stalled', id }),
  })

  return {
    get running() {
      return running.size
    },
    get waiting() {
      return startRate.waiting
    },
    async close({ grace = '10s' } = {}) {
      const graceMs = durationMs(grace, 'grace')
      startRate.close()
      const timer = setTimeout(() => {
        isOver = true
        const reason = new DOMException('the worker is closing', 'AbortError')
        for (const shutDown of running) shutDown.abort(reason)
      }, graceMs)
      const patience = setTimeout(() => work.abandon(), graceMs + stopGraceMs + brokerPatienceMs)
      await work.close()
      clearTimeout(timer)
      clearTimeout(patience)
    },
  }
}

/**
 * Creates the limiter of a rate. Jobs may wait, so none starts while the store fails: a local guess
 * could exceed the rate.
 */
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
 * Returns whether a job that was running when workers died runs again after a delay. Jobs that were
 * lost together return together, and one of them may be the cause. With delays the others complete.
 */
function runsLater(interrupted: number): boolean {
  return interrupted > 1 && Math.random() < 0.5
}
