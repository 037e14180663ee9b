import { type ControlCall, errorText, notify, SluiceError, warnOnce } from '@sluice/core'
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
import { type StoredJob, storedJob } from '../redis/stored-job.ts'
import { type FoundJob, JobTable } from './job-table.ts'
import { type RabbitmqBrokerOptions, type RabbitmqSetup, setUpRabbitmq } from './options.ts'
import { type Delivery, Publisher } from './publisher.ts'
import { Sweep } from './sweep.ts'
import { RabbitmqWorker } from './worker.ts'

/**
 * Longest time (ms) for which a worker holds a job that waits for its rate. RabbitMQ ends the
 * channel of a worker that holds a message for half an hour, and with the channel all its runs.
 */
const maxHeldMs = 10_000

/** Time (ms) by which a message outlives its job, which is told to have expired before. */
const messageMarginMs = 600_000

/**
 * Delivers jobs by RabbitMQ, and keeps them in Redis. Install `amqplib` beside it.
 * @example
 * const broker = rabbitmqBroker({ connection: 'amqp://localhost', store: redisStore(redis) })
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function rabbitmqBroker(options: RabbitmqBrokerOptions): Broker {
  return new RabbitmqBroker(setUpRabbitmq(options))
}

class RabbitmqBroker implements Broker {
  readonly isShared = true
  readonly name: string
  readonly maxHeldMs = maxHeldMs
  readonly #setup: RabbitmqSetup
  readonly #calls: BoundedCalls
  readonly #jobs: JobTable
  readonly #publisher: Publisher
  readonly #sweep: Sweep
  readonly #workers = new Set<RabbitmqWorker>()
  #isClosed = false

  constructor(setup: RabbitmqSetup) {
    const { name, server, queue, deadlineMs } = setup
    this.name = name
    this.#setup = setup
    this.#calls = new BoundedCalls(deadlineMs)
    this.#jobs = new JobTable(setup)
    this.#publisher = new Publisher({ server, queue, deadlineMs, onError: this.#report })
    this.#sweep = new Sweep({
      ...{ jobs: this.#jobs, publisher: this.#publisher, deadlineMs, onError: this.#report },
    })
  }

  async enqueue(job: NewJob, terms: EnqueueTerms): Promise<Enqueued> {
    return this.#ask(async (ask) => {
      // Nothing is written while nothing can be delivered.
      await this.#publisher.ready()
      this.#sweep.start()
      if (ask.isUnwanted) throw new Error('it was given up')
      const wanted = storedJob(job, terms)
      const claim = { claim: job.id, terms, text: this.#jobs.textOf(wanted) }
      const end = (id: string) => this.#jobs.endOverdue(id)
      const taken = await this.#jobs.records.take(wanted, claim, { ask, end })
      if (taken.outcome !== 'taken') return taken
      const { id, isKnown } = taken
      await this.#publishFirst({ ...wanted, id }, ask)
      return { outcome: isKnown ? 'known' : 'enqueued', id }
    })
  }

  async find(identity: string, idempotencyKey: string): Promise<string | undefined> {
    return this.#ask(() => this.#jobs.records.find(identity, idempotencyKey))
  }

  async status(id: string): Promise<JobStatus | undefined> {
    return this.#ask(async () => {
      const found = await this.#jobs.find(id)
      return found && isOverdue(found) ? { ...found.status, state: 'expired' } : found?.status
    })
  }

  async cancel(id: string): Promise<Cancelled> {
    return this.#ask(async (control) => {
      const found = await this.#jobs.find(id, control)
      if (!found) return 'unknown'
      if (found.status.state === 'cancelled') return 'cancelled'
      if (!isOpen(found.status) || isOverdue(found)) return 'finished'
      const end = await this.#jobs.endWaiting(found.job, 'cancelled', control)
      if (end === 'running') return 'cancelling'
      return end === 'ended' ? 'cancelled' : end
    })
  }

  async depth(): Promise<Depth> {
    return this.#ask(() => this.#jobs.records.depth())
  }

  work(run: RunJob, options: WorkOptions): BrokerWorker {
    this.#checkOpen()
    this.#warnOfLongRuns(options)
    this.#sweep.start()
    const { server, queue } = this.#setup
    const worker = new RabbitmqWorker({
      ...{ server, queue, jobs: this.#jobs, publisher: this.#publisher, onError: this.#report },
      ...{ run, options },
    })
    this.#workers.add(worker)
    return worker
  }

  async deadLetters({ offset, limit }: Page): Promise<readonly JobStatus[]> {
    return this.#ask(async () => {
      if (limit === 0) return []
      const found = await this.#jobs.deadLetters(offset, offset + limit - 1)
      return found.map(({ status }) => status)
    })
  }

  async retry(id: string): Promise<boolean> {
    return this.#ask(async (control) => {
      const delivery = await this.#jobs.retry(id, control)
      if (!delivery) return false
      this.#sweep.start()
      // The job waits again by now. Jobs that are not published are swept.
      await this.#publish(delivery).catch(this.#report)
      return true
    })
  }

  async forget(id: string): Promise<boolean> {
    return this.#ask((control) => this.#jobs.forget(id, control))
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#sweep.stop()
    await closeWorkers([...this.#workers])
    await this.#publisher.close()
  }

  /**
   * Publishes the first message of a job. If that fails, its client is told that the job may not
   * exist. Then it is withdrawn, unless others may have been told of it by its idempotency key.
   */
  async #publishFirst(job: StoredJob, ask: ControlCall): Promise<void> {
    const { id, enqueuedAt, expiresAt } = job
    const lastsMs = expiresAt === undefined ? undefined : expiresAt - enqueuedAt + messageMarginMs
    try {
      if (ask.isUnwanted) throw new Error('it was given up')
      await this.#publish({ id, number: 1 }, lastsMs)
    } catch (error) {
      if (!job.record) await this.#jobs.endWaiting(job, 'withdrawn').catch(this.#report)
      throw error
    }
    if (ask.isUnwanted && !job.record) await this.#jobs.endWaiting(job, 'withdrawn')
  }

  async #publish(delivery: Delivery, expiresMs?: number): Promise<void> {
    await this.#publisher.publish(delivery, { expiresMs })
    // If this is lost, the job is delivered once more, and its first message stands for nothing.
    void this.#jobs.published(delivery).catch(this.#report)
  }

  #warnOfLongRuns({ timeoutMs = 0 }: WorkOptions): void {
    const { consumerTimeoutMs } = this.#setup
    if (timeoutMs + maxHeldMs <= consumerTimeoutMs) return
    warnOnce(
      `the queue '${this.name}': a run may take ${timeoutMs} ms, and a job wait ${maxHeldMs} ms for its rate; RabbitMQ takes it back after ${consumerTimeoutMs} ms. Lower the worker's timeout, or raise consumer_timeout in rabbitmq.conf and consumerTimeout of rabbitmqBroker`,
    )
  }

  async #ask<T>(work: (ask: ControlCall) => Promise<T>): Promise<T> {
    this.#checkOpen()
    return this.#calls.ask(work)
  }

  readonly #report = (error: unknown): void => {
    if (this.#isClosed) return
    const known = error instanceof Error ? error : new Error(errorText(error))
    if (this.#setup.onError) notify(this.#setup.onError, known)
    else warnOnce(`the queue '${this.name}': ${errorText(known)}`)
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new SluiceError('SLUICE_BROKER_CLOSED', 'the broker was closed')
  }
}

/** True if a job still waits, has never begun, and is past its `expiresAt`. */
function isOverdue({ job, status, hasBegun }: FoundJob): boolean {
  if (status.state !== 'pending' || hasBegun) return false
  return job.expiresAt !== undefined && job.expiresAt <= Date.now()
}
