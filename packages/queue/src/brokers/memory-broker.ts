import { knownFields, SluiceError, wholeNumber } from '@sluice/core'
import type {
  Broker,
  Cancelled,
  Depth,
  Enqueued,
  EnqueueTerms,
  Page,
  RunJob,
  Settlement,
  WorkOptions,
} from '../broker.ts'
import { isOpen, type JobStatus, type NewJob } from '../job.ts'
import { Flow } from './flow.ts'
import { type Entry, JobTable } from './job-table.ts'
import { MemoryWorker } from './memory-worker.ts'

export interface MemoryBrokerOptions {
  /** Names the queue, in events and for the limits of its workers. @default 'jobs' */
  name?: string
  /** Dead letters that are kept; the oldest go first. A whole number ≥ 0. @default 10_000 */
  maxDeadLetters?: number
}

/**
 * Keeps jobs in this process: for development and tests. They are gone with it.
 * @throws SluiceError when an option is unknown or out of range
 */
export function memoryBroker(options: MemoryBrokerOptions = {}): Broker {
  knownFields(options, 'memoryBroker', ['name', 'maxDeadLetters'])
  const { name = 'jobs', maxDeadLetters = 10_000 } = options
  wholeNumber(maxDeadLetters, { option: 'maxDeadLetters' }, { min: 0 })
  return new MemoryBroker(name, maxDeadLetters)
}

class MemoryBroker implements Broker {
  readonly isShared = false
  readonly name: string
  readonly #jobs: JobTable
  readonly #flow = new Flow()
  readonly #workers = new Set<MemoryWorker>()
  #isClosed = false

  constructor(name: string, maxDeadLetters: number) {
    this.name = name
    this.#jobs = new JobTable(maxDeadLetters)
  }

  async enqueue(job: NewJob, terms: EnqueueTerms): Promise<Enqueued> {
    this.#checkOpen()
    const nowMs = Date.now()
    this.#jobs.forgetEnded(nowMs)
    const { idempotency } = terms
    const owner = idempotency && ownerOf(job.identity, idempotency.key)
    const first = owner === undefined ? undefined : this.#jobs.firstWith(owner)
    if (idempotency && first) {
      if (first.fingerprint !== idempotency.fingerprint) return { outcome: 'mismatch' }
      return { outcome: 'known', id: first.job.id }
    }
    if (this.#jobs.depth >= terms.maxDepth) return { outcome: 'full', bound: 'queue' }
    if (this.#jobs.depthOf(job.identity) >= terms.maxDepthPerIdentity) {
      return { outcome: 'full', bound: 'identity' }
    }
    this.#flow.came(nowMs, this.#jobs.depth)
    this.#jobs.add({
      // What a real broker would carry, so that development shows what production does.
      job: JSON.parse(JSON.stringify(job)),
      state: 'pending',
      dueAt: 0,
      attempts: 0,
      retentionMs: terms.retentionMs,
      owner,
      fingerprint: idempotency?.fingerprint,
    })
    this.#wakeWorkers()
    return { outcome: 'enqueued', id: job.id }
  }

  async find(identity: string, idempotencyKey: string): Promise<string | undefined> {
    this.#checkOpen()
    this.#jobs.forgetEnded(Date.now())
    return this.#jobs.firstWith(ownerOf(identity, idempotencyKey))?.job.id
  }

  async status(id: string): Promise<JobStatus | undefined> {
    this.#checkOpen()
    this.#jobs.forgetEnded(Date.now())
    const entry = this.#jobs.get(id)
    return entry && statusOf(entry)
  }

  async cancel(id: string): Promise<Cancelled> {
    this.#checkOpen()
    const entry = this.#jobs.get(id)
    if (!entry) return 'unknown'
    if (!isOpen(entry)) return entry.state === 'cancelled' ? 'cancelled' : 'finished'
    if (entry.running) {
      entry.running.abort(new DOMException('the job was cancelled', 'AbortError'))
      return 'cancelling'
    }
    this.#end(entry, { outcome: 'cancelled' })
    return 'cancelled'
  }

  async depth(): Promise<Depth> {
    const nowMs = Date.now()
    const { depth, running, dead, oldestAt = nowMs } = this.#jobs
    const oldestMs = Math.max(0, nowMs - oldestAt)
    return { depth, running, dead, oldestMs, ...this.#flow.rates(nowMs) }
  }

  work(run: RunJob, { concurrency }: WorkOptions): MemoryWorker {
    this.#checkOpen()
    const worker = new MemoryWorker({
      concurrency,
      take: () => this.#jobs.take(Date.now()),
      nextAt: () => this.#jobs.nextAt,
      run: async (entry, signal) => {
        const settlement = await run({ ...entry.job, attempt: entry.attempts + 1 }, signal)
        this.#end(entry, settlement)
      },
    })
    this.#workers.add(worker)
    return worker
  }

  async deadLetters({ offset, limit }: Page): Promise<readonly JobStatus[]> {
    return this.#jobs
      .deadLetters()
      .slice(offset, offset + limit)
      .map(statusOf)
  }

  async retry(id: string): Promise<boolean> {
    const entry = this.#jobs.get(id)
    if (entry?.state !== 'failed') return false
    this.#jobs.reopen(entry)
    this.#wakeWorkers()
    return true
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#workers].map((worker) => worker.close()))
  }

  #end(entry: Entry, settlement: Settlement): void {
    const nowMs = Date.now()
    this.#jobs.settle(entry, settlement, nowMs)
    if (!isOpen(entry)) this.#flow.went(nowMs)
    this.#wakeWorkers()
  }

  #wakeWorkers(): void {
    for (const worker of this.#workers) worker.wake()
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new SluiceError('SLUICE_BROKER_CLOSED', 'the broker was closed')
  }
}

function ownerOf(identity: string, idempotencyKey: string): string {
  return JSON.stringify([identity, idempotencyKey])
}

function statusOf({ job, state, attempts, result, error }: Entry): JobStatus {
  const { id, identity, enqueuedAt } = job
  return { id, identity, state, enqueuedAt, attempts, result, error }
}
