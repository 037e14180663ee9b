import { errorText, isSluiceError, sleep } from '@sluice/core'
import type { Job as BullmqJob, Worker } from 'bullmq'
import {
  type BrokerWorker,
  LeaseLost,
  type RunJob,
  type Settlement,
  type WorkOptions,
} from '../../broker.ts'
import { type Ending, readJob, type StoredJob } from '../redis/stored-job.ts'
import type { BullmqConnection } from './connection.ts'
import type { QueueState } from './queue-state.ts'

/** The part of BullMQ that is used. It is loaded on first use, because it is an optional peer. */
export type Bullmq = typeof import('bullmq')

/**
 * BullMQ must not give up interrupted jobs: our worker counts interruptions, and gives a job up.
 */
const stallsOfBullmq = 1_000_000

/** Delay (ms) after an error that is not the job's: Redis was away, full, or loading. */
const infrastructureRetryMs = 1_000

const cancellationPollMs = 500
const sweepMs = 30_000

export interface BullmqWork {
  readonly bullmq: Bullmq
  readonly queueName: string
  readonly connected: BullmqConnection
  readonly prefix: string
  readonly state: QueueState
  readonly onError: (error: unknown) => void
  readonly run: RunJob
  readonly options: WorkOptions
}

/** A run under way: which job, and by which lock. */
interface Run {
  readonly native: BullmqJob
  readonly token: string | undefined
  readonly job: StoredJob
  readonly controller: AbortController
  /** True once the handler was called. */
  hasBegun: boolean
}

/**
 * Runs jobs of a BullMQ queue: carries out what our worker decides, and leaves the delivery to
 * BullMQ.
 */
export class BullmqWorker implements BrokerWorker {
  readonly #work: BullmqWork
  readonly #worker: Worker
  readonly #stopRenewing: () => Promise<void>
  readonly #running = new Map<string, Run>()
  /** Settlements of jobs that BullMQ has not written yet. */
  readonly #settling = new WeakMap<BullmqJob, Settlement>()
  /** Jobs that have ended, until their kept bytes are counted. */
  readonly #keeping = new Set<Promise<void>>()
  readonly #timers: readonly NodeJS.Timeout[]
  readonly #abandoned: Promise<void>
  #letGo: () => void = () => undefined
  #isPolling = false
  #isClosing = false
  #isAbandoned = false

  constructor(work: BullmqWork) {
    this.#work = work
    this.#abandoned = new Promise((resolve) => {
      this.#letGo = resolve
    })
    const { bullmq, queueName, connected, prefix, options, onError } = work
    const worker = new (renewing(bullmq))(queueName, (job, token) => this.#process(job, token), {
      connection: connected.ofWorkers,
      prefix,
      concurrency: options.concurrency,
      lockDuration: options.leaseMs,
      stalledInterval: Math.max(1, Math.floor(options.leaseMs / 2)),
      maxStalledCount: stallsOfBullmq,
      // The worker starts again after an error of the connection.
      runRetryDelay: infrastructureRetryMs,
      settings: { backoffStrategy: (_attempts, _type, error) => delayOf(error) },
    })
    this.#worker = worker
    this.#stopRenewing = () => worker.stopRenewing()
    worker.on('error', onError)
    worker.on('completed', (native) => this.#settled(native))
    worker.on('failed', (native, error) => {
      if (native && this.#isDirective(error)) this.#settled(native)
    })
    worker.on('stalled', (id) => options.onStalled(id))
    worker.on('lockRenewalFailed', (ids) => void Promise.all(ids.map((id) => this.#stopLost(id))))
    void this.#reported(work.state.records.sweep())
    this.#timers = [
      setInterval(() => void this.#pollCancellations(), cancellationPollMs).unref(),
      setInterval(() => void this.#reported(work.state.records.sweep()), sweepMs).unref(),
    ]
  }

  async close(): Promise<void> {
    this.#isClosing = true
    const closed = this.#worker.close().then(() => Promise.all(this.#keeping))
    await Promise.race([closed, this.#abandoned])
    for (const timer of this.#timers) clearInterval(timer)
  }

  abandon(): void {
    this.#isAbandoned = true
    this.#letGo()
    void this.#stopRenewing()
    const backend = this.#worker.getBackend()
    void this.#reported(backend.close(true))
    // BullMQ may have begun to end its connection before.
    const { isShared } = this.#work.connected
    for (const client of [isShared ? undefined : backend.client, backend.blockingClient]) {
      client?.then(
        (connection) => connection.disconnect(),
        () => undefined,
      )
    }
  }

  async #process(native: BullmqJob, token: string | undefined): Promise<Ending> {
    const job = readJob(native)
    const run: Run = { native, token, job, controller: new AbortController(), hasBegun: false }
    this.#running.set(job.id, run)
    try {
      return await this.#settle(run, await this.#run(run))
    } catch (error) {
      if (this.#isDirective(error)) throw error
      this.#work.onError(error)
      return await this.#postpone(run, infrastructureRetryMs)
    } finally {
      // Another run of the job may have begun, where this one has lost its lock.
      if (this.#running.get(job.id) === run) this.#running.delete(job.id)
    }
  }

  async #run(run: Run): Promise<Settlement> {
    const { state, onError } = this.#work
    const { isToStop, interrupted, hasBegun } = await state.occupy(run.job)
    if (isToStop) return { outcome: 'cancelled' }
    // BullMQ may have fetched it just before it was closed.
    if (this.#isClosing) return { outcome: 'returned' }
    const { retentionMs: _, record: __, ...job } = run.job
    const delivery = {
      ...{ interrupted, hasBegun },
      async begin() {
        try {
          await state.records.begin(run.job)
          run.hasBegun = true
        } catch (error) {
          onError(error)
          throw error
        }
      },
    }
    const attempt = run.native.attemptsMade + 1
    try {
      return await this.#work.run({ ...job, attempt }, run.controller.signal, delivery)
    } catch (error) {
      return { outcome: 'dead', error: errorText(error) }
    }
  }

  /** Carries out the settlement of a run. BullMQ takes it as a thrown error. */
  async #settle(run: Run, settlement: Settlement): Promise<Ending> {
    const { bullmq } = this.#work
    // BullMQ does not touch a job after a `DelayedError`.
    if (isSluiceError(run.controller.signal.reason, 'SLUICE_LEASE_LOST'))
      throw new bullmq.DelayedError()
    if (settlement.outcome === 'postponed') return this.#postpone(run, settlement.delayMs)
    if (settlement.outcome === 'returned') {
      await this.#unbegin(run)
      await run.native.moveToWait(run.token)
      settlement.onSettled?.()
      throw new bullmq.WaitingError()
    }
    this.#settling.set(run.native, settlement)
    if (settlement.outcome === 'retry') throw new RetryLater(settlement.error, settlement.delayMs)
    // If this fails, the place is swept later: the outcome of the job matters more.
    await this.#reported(this.#work.state.release(run.job, run.token))
    if (settlement.outcome === 'dead') throw new bullmq.UnrecoverableError(settlement.error)
    const { onSettled: _, ...ending } = settlement
    return ending
  }

  #settled(native: BullmqJob): void {
    const settlement = this.#settling.get(native)
    this.#settling.delete(native)
    if (!settlement) return
    settlement.onSettled?.()
    if (settlement.outcome === 'retry') return
    const set = settlement.outcome === 'dead' ? 'failed' : 'completed'
    const keeping = this.#reported(this.#work.state.records.keep(readJob(native), set))
    this.#keeping.add(keeping)
    void keeping.finally(() => this.#keeping.delete(keeping))
  }

  /**
   * Puts a job back for later, as if it had not been taken, and repeats that until Redis confirms
   * it.
   */
  async #postpone(run: Run, delayMs: number): Promise<never> {
    const { DelayedError } = this.#work.bullmq
    for (;;) {
      try {
        await this.#unbegin(run)
        await run.native.moveToDelayed(Date.now() + delayMs, run.token)
        throw new DelayedError()
      } catch (error) {
        if (error instanceof DelayedError) throw error
        this.#work.onError(error)
        // Without its lock the job runs elsewhere; after a close it will.
        if (isLockLost(error) || this.#isAbandoned) throw new DelayedError()
        await sleep(infrastructureRetryMs)
      }
    }
  }

  async #unbegin(run: Run): Promise<void> {
    if (!run.hasBegun) return
    await this.#work.state.records.begin(run.job, -1)
    run.hasBegun = false
  }

  /**
   * Stops runs that have lost their lock. BullMQ may mean an earlier run of the job, whose renewal
   * failed as it ended.
   */
  async #stopLost(id: string): Promise<void> {
    const run = this.#running.get(id)
    if (!run || (await this.#reported(this.#work.state.holdsLock(id, run.token))) !== false) return
    run.controller.abort(new LeaseLost('the job is run elsewhere by now'))
  }

  #isDirective(error: unknown): boolean {
    const { DelayedError, WaitingError, UnrecoverableError } = this.#work.bullmq
    const directives = [DelayedError, WaitingError, UnrecoverableError, RetryLater]
    return directives.some((directive) => error instanceof directive)
  }

  /** All in one go: the client sends them together. */
  async #pollCancellations(): Promise<void> {
    if (this.#isPolling) return
    this.#isPolling = true
    try {
      const looks = [...this.#running].map(async ([id, { controller }]) => {
        if (!(await this.#reported(this.#work.state.isToStop(id)))) return
        controller.abort(new DOMException('the job was cancelled', 'AbortError'))
      })
      await Promise.all(looks)
    } finally {
      this.#isPolling = false
    }
  }

  async #reported<T>(asked: Promise<T>): Promise<T | undefined> {
    try {
      return await asked
    } catch (error) {
      this.#work.onError(error)
      return undefined
    }
  }
}

/**
 * A worker that renews no locks after a failed close: BullMQ's never ends if it never reached
 * Redis.
 */
function renewing({ Worker }: Bullmq) {
  return class extends Worker {
    stopRenewing(): Promise<void> {
      return this.lockManager.close()
    }
  }
}

/** The delay strategy of BullMQ: the time at which a job runs again. */
class RetryLater extends Error {
  readonly delayMs: number

  constructor(message: string, delayMs: number) {
    super(message)
    this.delayMs = delayMs
  }
}

function delayOf(error: Error | undefined): number {
  return error instanceof RetryLater ? error.delayMs : infrastructureRetryMs
}

/** Error codes of BullMQ: no such job, no lock, not active, another's lock. */
function isLockLost(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? Number(error.code) : 0
  return [-1, -2, -3, -6].includes(code)
}
