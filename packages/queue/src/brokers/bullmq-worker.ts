import type { Job as BullmqJob, Worker } from 'bullmq'
import type { BrokerWorker, RunJob, WorkOptions } from '../broker.ts'
import { type Ending, readJob } from './bullmq-job.ts'
import type { BullmqPlaces } from './bullmq-places.ts'

/** What of the library is needed: it is loaded when it is used, since not everybody has it. */
export type Bullmq = typeof import('bullmq')

/** How often a job may be taken from workers that are gone before it is a dead letter: it may be what ends them. */
const mostStalls = 10

/** After an error that is no failure of the job's: Redis was away. */
const infrastructureRetryMs = 1_000

const cancellationPollMs = 500
const sweepMs = 30_000

export interface BullmqWork {
  readonly bullmq: Bullmq
  readonly queueName: string
  readonly connection: object
  readonly prefix: string
  readonly places: BullmqPlaces
  readonly onError: (error: Error) => void
  readonly run: RunJob
  readonly options: WorkOptions
}

/** Runs jobs of a BullMQ queue: carries out what our worker decides, and leaves the delivery to BullMQ. */
export class BullmqWorker implements BrokerWorker {
  readonly #work: BullmqWork
  readonly #worker: Worker
  readonly #running = new Map<string, AbortController>()
  readonly #timers: readonly NodeJS.Timeout[]
  #isPolling = false

  constructor(work: BullmqWork) {
    this.#work = work
    const { bullmq, queueName, connection, prefix, options, onError } = work
    this.#worker = new bullmq.Worker(queueName, (job, token) => this.#process(job, token), {
      connection: { ...connection, maxRetriesPerRequest: null },
      prefix,
      concurrency: options.concurrency,
      lockDuration: options.leaseMs,
      stalledInterval: Math.max(1, Math.floor(options.leaseMs / 2)),
      maxStalledCount: mostStalls,
      settings: { backoffStrategy: (_attempts, _type, error) => delayOf(error) },
    })
    this.#worker.on('error', onError)
    this.#worker.on('stalled', (id) => options.onStalled(id))
    // Also one that BullMQ gives up by itself, since too many workers died with it.
    this.#worker.on('failed', (job) => {
      if (job?.finishedOn !== undefined) void this.#reported(work.places.release(readJob(job)))
    })
    void this.#reported(work.places.sweep())
    this.#timers = [
      setInterval(() => void this.#pollCancellations(), cancellationPollMs).unref(),
      setInterval(() => void this.#reported(work.places.sweep()), sweepMs).unref(),
    ]
  }

  async close(): Promise<void> {
    await this.#worker.close()
    for (const timer of this.#timers) clearInterval(timer)
  }

  async #process(native: BullmqJob, token: string | undefined): Promise<Ending> {
    const { bullmq, places, run } = this.#work
    const job = readJob(native)
    const controller = new AbortController()
    this.#running.set(job.id, controller)
    try {
      if (await places.occupy(job)) {
        await places.release(job, token)
        return { outcome: 'cancelled' }
      }
      const settlement = await run({ ...job, attempt: native.attemptsMade + 1 }, controller.signal)
      if (settlement.outcome === 'returned') {
        await native.moveToWait(token)
        throw new bullmq.WaitingError()
      }
      if (settlement.outcome === 'retry') throw new RetryLater(settlement.error, settlement.delayMs)
      await places.release(job, token)
      if (settlement.outcome === 'dead') throw new bullmq.UnrecoverableError(settlement.error)
      return settlement
    } finally {
      // Another run of the job may have begun, where this one has lost its lock.
      if (this.#running.get(job.id) === controller) this.#running.delete(job.id)
    }
  }

  /** All in one go: the client sends them together. */
  async #pollCancellations(): Promise<void> {
    if (this.#isPolling) return
    this.#isPolling = true
    const looks = [...this.#running].map(async ([id, controller]) => {
      const record = await this.#reported(this.#work.places.cancelledRecord(id))
      if (record === undefined) return
      controller.abort(new DOMException('the job was cancelled', 'AbortError'))
    })
    await Promise.all(looks)
    this.#isPolling = false
  }

  async #reported<T>(asked: Promise<T>): Promise<T | undefined> {
    try {
      return await asked
    } catch (error) {
      if (error instanceof Error) this.#work.onError(error)
      return undefined
    }
  }
}

/** How BullMQ is told when a job shall run again. */
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
