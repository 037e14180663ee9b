import { invalid, knownFields, notify, SluiceError, warnOnce, wholeNumber } from '@sluice/core'
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
} from '../broker.ts'
import { isOpen, type JobStatus, type NewJob } from '../job.ts'
import { readJob, statusOf, writeJob } from './bullmq-job.ts'
import { cancelledStatus, findJob, isForgotten } from './bullmq-lookup.ts'
import { BullmqPlaces } from './bullmq-places.ts'
import { type Bullmq, BullmqWorker } from './bullmq-worker.ts'
import { LateWorker } from './late-worker.ts'

export interface BullmqBrokerOptions {
  /** Where Redis is: `redis://…`, or the options of an ioredis connection. The broker opens connections of its own. */
  connection: string | object
  /** The name of BullMQ's queue: letters, digits, `.`, `_` and `-`. @default 'jobs' */
  name?: string
  /** What BullMQ's keys begin with; in braces (`{bull}`) for a Cluster. @default 'bull' */
  prefix?: string
  /** Dead letters that are kept; the oldest go first. A whole number ≥ 0. @default 10_000 */
  maxDeadLetters?: number
  /** The longest that enqueueing and looking up may take, in ms, before it is an error: 1 to 60,000. @default 2_000 */
  deadlineMs?: number
  /** Told of errors of the connections, which are made again by themselves. @default a warning, once for each message */
  onError?: (error: Error) => void
}

const optionNames = ['connection', 'name', 'prefix', 'maxDeadLetters', 'deadlineMs', 'onError']

/** Attempts are counted by our worker, which knows how many there may be; BullMQ is to ask it each time. */
const attemptsOfBullmq = 1_000_000

/** How long a job that is cancelled is known as that. */
const cancelledKeptMs = 3_600_000

/**
 * Keeps jobs in Redis by BullMQ (6), which is to be installed beside ioredis.
 * @example
 * const broker = bullmqBroker({ connection: 'redis://localhost' })
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function bullmqBroker(options: BullmqBrokerOptions): Broker {
  knownFields(options, 'bullmqBroker', optionNames)
  const { connection, name = 'jobs', maxDeadLetters = 10_000, deadlineMs = 2_000 } = options
  if (typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,128}$/.test(name)) {
    throw invalid({ option: 'name' }, name, "1 to 128 letters, digits, '.', '_' and '-'")
  }
  wholeNumber(maxDeadLetters, { option: 'maxDeadLetters' }, { min: 0 })
  wholeNumber(deadlineMs, { option: 'deadlineMs' }, { min: 1, max: 60_000 })
  return new BullmqBroker({
    name,
    connection: connectionOf(connection),
    prefix: options.prefix ?? 'bull',
    maxDeadLetters,
    deadlineMs,
    onError: options.onError,
  })
}

/** BullMQ's own waits up to 20 seconds; a queue that is back should not stay unused for so long. */
function retryStrategy(times: number): number {
  return Math.min(100 * times, 2_000)
}

function connectionOf(connection: unknown): object {
  if (typeof connection === 'string' && URL.canParse(connection)) {
    return { retryStrategy, url: connection }
  }
  if (typeof connection === 'object' && connection !== null && !('duplicate' in connection)) {
    return { retryStrategy, ...connection }
  }
  const legal =
    'a URL or the options of a connection, not a client: BullMQ needs connections of its own'
  throw invalid({ option: 'connection' }, connection, legal)
}

interface Setup extends Required<Omit<BullmqBrokerOptions, 'onError' | 'connection'>> {
  readonly connection: object
  readonly onError: ((error: Error) => void) | undefined
}

interface Opened {
  readonly bullmq: Bullmq
  readonly queue: Queue
  readonly places: BullmqPlaces
}

class BullmqBroker implements Broker {
  readonly isShared = true
  readonly name: string
  readonly #setup: Setup
  readonly #workers = new Set<LateWorker>()
  #opened: Promise<Opened> | undefined
  #isClosed = false

  constructor(setup: Setup) {
    this.name = setup.name
    this.#setup = setup
  }

  async enqueue(job: NewJob, terms: EnqueueTerms): Promise<Enqueued> {
    return this.#ask(async ({ queue, places }) => {
      const taken = await places.take(job, terms)
      if (taken.outcome !== 'enqueued') return taken
      try {
        await queue.add('job', writeJob(job), {
          jobId: taken.id,
          timestamp: job.enqueuedAt,
          attempts: attemptsOfBullmq,
          backoff: { type: 'sluice' },
          stackTraceLimit: 0,
          removeOnComplete: { age: Math.ceil(terms.retentionMs / 1_000) },
          removeOnFail: { count: this.#setup.maxDeadLetters },
        })
      } catch (error) {
        await places.undo({ ...job, id: taken.id }, terms).catch(this.#report)
        throw error
      }
      return taken
    })
  }

  async find(identity: string, idempotencyKey: string): Promise<string | undefined> {
    return this.#ask(({ places }) => places.find(identity, idempotencyKey))
  }

  async status(id: string): Promise<JobStatus | undefined> {
    return this.#ask(async ({ queue, places }) => {
      const found = await findJob(queue, id)
      if (!found) return cancelledStatus(await places.cancelledRecord(id))
      return isForgotten(found) ? undefined : found.status
    })
  }

  async cancel(id: string): Promise<Cancelled> {
    return this.#ask(async ({ queue, places }) => {
      const found = await findJob(queue, id)
      if (!found) return (await places.cancelledRecord(id)) === undefined ? 'unknown' : 'cancelled'
      const { job, status: before } = found
      if (!isOpen(before)) {
        return before.state === 'cancelled' ? 'cancelled' : 'finished'
      }
      // The mark is there first: a worker that takes the job meanwhile finds it.
      const record: JobStatus = { ...before, state: 'cancelled' }
      await places.markCancelled(id, JSON.stringify(record), cancelledKeptMs)
      if ((await queue.remove(id)) === 1) {
        await places.release(readJob(job))
        return 'cancelled'
      }
      const after = statusOf(job, await job.getState())
      if (isOpen(after)) return 'cancelling'
      await places.unmarkCancelled(id)
      return 'finished'
    })
  }

  async depth(): Promise<Depth> {
    return this.#ask(({ places }) => places.depth())
  }

  work(run: RunJob, options: WorkOptions): BrokerWorker {
    this.#checkOpen()
    const { name: queueName, connection, prefix } = this.#setup
    const onError = this.#report
    const opening = this.#open().then(
      ({ bullmq, places }) =>
        new BullmqWorker({
          ...{ bullmq, queueName, connection, prefix, places, onError },
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
    return this.#ask(async ({ queue, places }) => {
      const found = await findJob(queue, id)
      if (found?.status.state !== 'failed') return false
      await places.occupy(readJob(found.job))
      await found.job.retry('failed', { resetAttemptsMade: true })
      return true
    })
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await Promise.all([...this.#workers].map((worker) => worker.close()))
    if (!this.#opened) return
    const { queue } = await this.#opened
    await queue.close()
  }

  /** Opens the queue with the first use: a broker that is made and not used has no connection. */
  #open(): Promise<Opened> {
    this.#opened ??= this.#connect()
    return this.#opened
  }

  async #connect(): Promise<Opened> {
    const bullmq = await loadBullmq()
    const { name, connection, prefix } = this.#setup
    const queue = new bullmq.Queue(name, { connection: { ...connection }, prefix })
    queue.on('error', this.#report)
    return { bullmq, queue, places: new BullmqPlaces(queue) }
  }

  async #ask<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
    this.#checkOpen()
    const { deadlineMs } = this.#setup
    const asked = this.#open().then(work)
    // Where the deadline was first, nobody else is told.
    asked.catch(() => undefined)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        reject(failure(`the broker did not answer within ${deadlineMs} ms`))
      }, deadlineMs)
    })
    try {
      return await Promise.race([asked, late])
    } catch (error) {
      if (error instanceof SluiceError) throw error
      throw failure(`the broker failed: ${messageOf(error)}`, error)
    } finally {
      clearTimeout(timer)
    }
  }

  readonly #report = (error: unknown): void => {
    const known = error instanceof Error ? error : new Error(messageOf(error))
    if (this.#setup.onError) notify(this.#setup.onError, known)
    else warnOnce(`the queue '${this.name}': ${known.message}`)
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new SluiceError('SLUICE_BROKER_CLOSED', 'the broker was closed')
  }
}

async function loadBullmq(): Promise<Bullmq> {
  try {
    return await import('bullmq')
  } catch (cause) {
    const message = 'bullmqBroker needs bullmq 6 and ioredis: npm install bullmq ioredis'
    throw new SluiceError('SLUICE_BROKER_FAILED', message, { cause })
  }
}

function failure(message: string, cause?: unknown): SluiceError {
  return new SluiceError('SLUICE_BROKER_FAILED', message, { cause })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
