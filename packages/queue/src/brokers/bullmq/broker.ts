import {
  type ControlCall,
  endsWithin,
  errorText,
  notify,
  SluiceError,
  warnOnce,
} from '@sluice/core'
import type { Queue } from 'bullmq'
import type {
  Broker,
  BrokerWorker,
  Cancelled,
  Depth,
  Enqueued,
  EnqueueTerms,
  Page,
  RunJob,
  WorkOptions,
} from '../../broker.ts'
import { isOpen, type JobStatus, type NewJob } from '../../job.ts'
import { BoundedCalls } from '../redis/bounded-calls.ts'
import { closeWorkers } from '../redis/close-workers.ts'
import { readJob, type StoredJob, statusOf, storedJob, writeJob } from '../redis/stored-job.ts'
import type { BullmqConnection } from './connection.ts'
import { findJob, isForgotten, isOverdue } from './lookup.ts'
import { type BullmqBrokerOptions, type BullmqSetup, setUpBullmq } from './options.ts'
import { QueueState } from './queue-state.ts'
import { type Bullmq, BullmqWorker } from './worker.ts'

/** Attempts that BullMQ allows: so many that our worker decides, which counts them itself. */
const attemptsOfBullmq = 1_000_000

/** Number of BullMQ's events that are kept, approximately. */
const eventsKept = 10

/** Time (ms) that `close` waits for the connections, after the workers. */
const connectionPatienceMs = 1_000

/**
 * Keeps jobs in Redis by BullMQ 6. Install `bullmq` and `ioredis` beside it.
 * @example
 * const broker = bullmqBroker({ connection: 'redis://localhost' })
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function bullmqBroker(options: BullmqBrokerOptions): Broker {
  return new BullmqBroker(setUpBullmq(options))
}

interface Opened {
  readonly bullmq: Bullmq
  readonly connected: BullmqConnection
  readonly queue: Queue
  readonly state: QueueState
}

class BullmqBroker implements Broker {
  readonly isShared = true
  readonly name: string
  readonly #setup: BullmqSetup
  readonly #calls: BoundedCalls
  readonly #workers = new Set<LateWorker>()
  #opened: Promise<Opened> | undefined
  #isClosed = false

  constructor(setup: BullmqSetup) {
    this.name = setup.name
    this.#setup = setup
    this.#calls = new BoundedCalls(setup.deadlineMs)
  }

  async enqueue(job: NewJob, terms: EnqueueTerms): Promise<Enqueued> {
    return this.#ask(async (opened, ask) => {
      const wanted = storedJob(job, terms)
      const claim = { claim: job.id, terms }
      const end = (id: string) => endOverdue(opened, id)
      const taken = await opened.state.records.take(wanted, claim, { ask, end })
      if (taken.outcome !== 'taken') return taken
      const { id, isKnown } = taken
      await this.#add(opened, { job: { ...wanted, id }, claim: job.id, ask })
      return { outcome: isKnown ? 'known' : 'enqueued', id }
    })
  }

  async find(identity: string, idempotencyKey: string): Promise<string | undefined> {
    return this.#ask(({ state }) => state.records.find(identity, idempotencyKey))
  }

  async status(id: string): Promise<JobStatus | undefined> {
    return this.#ask(async ({ queue, state }) => {
      const found = await findJob(queue, id)
      if (!found || isForgotten(found)) return undefined
      return (await isOverdue(found, state)) ? { ...found.status, state: 'expired' } : found.status
    })
  }

  async cancel(id: string): Promise<Cancelled> {
    return this.#ask(async ({ queue, state }, control) => {
      control.promise()
      const found = await findJob(queue, id)
      if (!found || isForgotten(found)) return 'unknown'
      if (found.status.state === 'cancelled') return 'cancelled'
      if (!isOpen(found.status) || (await isOverdue(found, state))) return 'finished'
      const end = await state.endWaiting(readJob(found.job), 'cancelled', control)
      if (end === 'running') return 'cancelling'
      return end === 'ended' ? 'cancelled' : end
    })
  }

  async depth(): Promise<Depth> {
    return this.#ask(({ state }) => state.records.depth())
  }

  work(run: RunJob, options: WorkOptions): BrokerWorker {
    this.#checkOpen()
    const { name: queueName, prefix } = this.#setup
    const onError = this.#report
    const opening = this.#open().then(
      (opened) =>
        new BullmqWorker({
          ...{ ...opened, queueName, prefix, onError },
          run,
          options,
        }),
    )
    const worker = new LateWorker(opening)
    opening.catch(onError)
    this.#workers.add(worker)
    return worker
  }

  async deadLetters({ offset, limit }: Page): Promise<readonly JobStatus[]> {
    return this.#ask(async ({ queue }) => {
      if (limit === 0) return []
      const jobs = await queue.getFailed(offset, offset + limit - 1)
      return jobs.map((job) => statusOf(job, 'failed'))
    })
  }

  async retry(id: string): Promise<boolean> {
    return this.#ask(async ({ queue, state }, control) => {
      control.promise()
      const found = await findJob(queue, id)
      if (found?.status.state !== 'failed') return false
      if (!(await state.records.changeDead(readJob(found.job), 'reopen', control))) return false
      if (control.isUnwanted) return false
      try {
        // This step is BullMQ's own, which knows no deadline.
        await found.job.retry('failed', { resetAttemptsMade: true })
        return true
      } catch (error) {
        // Another process was first.
        if ((await findJob(queue, id))?.status.state !== 'failed') return false
        throw error
      }
    })
  }

  async forget(id: string): Promise<boolean> {
    return this.#ask(async ({ queue, state }, control) => {
      control.promise()
      const found = await findJob(queue, id)
      return (
        found?.status.state === 'failed' &&
        state.records.changeDead(readJob(found.job), 'forget', control)
      )
    })
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await closeWorkers([...this.#workers])
    // A queue that could not be opened was reported to its caller, and has nothing to close.
    const opened = await this.#opened?.catch(() => undefined)
    if (!opened) return
    const { queue, state, connected } = opened
    if (!(await endsWithin(queue.close(), connectionPatienceMs))) {
      // It waits for an answer to its farewell.
      state.client.then(
        (client) => client.disconnect(),
        () => undefined,
      )
    }
    connected.end()
  }

  /**
   * Adds a job that has its place. After a timeout its client is told that the job may not exist.
   * Then it is added only if it has an idempotency key.
   */
  async #add(
    { queue, state }: Opened,
    { job, claim, ask }: { job: StoredJob; claim: string; ask: ControlCall },
  ): Promise<void> {
    if (ask.isUnwanted) return state.undo(job, claim)
    try {
      await queue.add('job', writeJob(job), {
        jobId: job.id,
        timestamp: job.enqueuedAt,
        attempts: attemptsOfBullmq,
        backoff: { type: 'sluice' },
        stackTraceLimit: 0,
        removeOnComplete: {
          age: Math.ceil(job.retentionMs / 1_000),
          count: this.#setup.maxKept,
        },
        removeOnFail: { count: this.#setup.maxDeadLetters },
      })
    } catch (error) {
      await state.undo(job, claim).catch(this.#report)
      throw error
    }
    if (ask.isUnwanted && !job.record) await state.endWaiting(job, 'withdrawn')
  }

  /** Opens the queue on first use: a broker without use has no connection. */
  #open(): Promise<Opened> {
    this.#opened ??= this.#connect()
    return this.#opened
  }

  async #connect(): Promise<Opened> {
    const bullmq = await loadBullmq()
    const { name, connect, prefix } = this.#setup
    const connected = connect()
    const queue = new bullmq.Queue(name, {
      ...{ connection: connected.ofQueue, prefix },
      // The events carry results, and Sluice does not read them.
      streams: { events: { maxLen: eventsKept } },
    })
    queue.on('error', this.#report)
    return { bullmq, connected, queue, state: new QueueState(queue, this.#setup) }
  }

  async #ask<T>(work: (opened: Opened, ask: ControlCall) => Promise<T>): Promise<T> {
    this.#checkOpen()
    return this.#calls.ask(async (ask) => {
      const opened = await this.#open()
      await opened.state.client
      // The answer may come after the deadline.
      if (ask.isUnwanted) throw new Error('it was given up')
      return work(opened, ask)
    })
  }

  readonly #report = (error: unknown): void => {
    const known = error instanceof Error ? error : new Error(errorText(error))
    if (this.#setup.onError) notify(this.#setup.onError, known)
    else warnOnce(`the queue '${this.name}': ${errorText(known)}`)
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new SluiceError('SLUICE_BROKER_CLOSED', 'the broker was closed')
  }
}

/** Ends a job that expired before a run began, so that it holds no place. */
async function endOverdue({ queue, state }: Opened, id: string): Promise<JobStatus | undefined> {
  const found = await findJob(queue, id)
  if (!found || (await state.endWaiting(readJob(found.job), 'expired')) !== 'ended')
    return undefined
  return found.status
}

async function loadBullmq(): Promise<Bullmq> {
  try {
    return await import('bullmq')
  } catch (cause) {
    const message = 'bullmqBroker needs bullmq 6 and ioredis: npm install bullmq ioredis'
    throw new SluiceError('SLUICE_BROKER_FAILED', message, { cause })
  }
}

/** A worker of a queue that is still being opened. */
class LateWorker implements BrokerWorker {
  readonly #opening: Promise<BrokerWorker>

  constructor(opening: Promise<BrokerWorker>) {
    this.#opening = opening
  }

  async close(): Promise<void> {
    // A worker that could not be opened was reported, and has nothing to close.
    const worker = await this.#opening.catch(() => undefined)
    await worker?.close()
  }

  abandon(): void {
    this.#opening.then(
      (worker) => worker.abandon(),
      () => undefined,
    )
  }
}
