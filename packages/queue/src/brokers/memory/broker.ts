import { errorText, knownFields, SluiceError } from '@sluice/core'
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
} from '../../broker.ts'
import { isOpen, type JobStatus, type NewJob } from '../../job.ts'
import { type KeptBounds, type KeptOptions, keptBounds } from '../kept-bounds.ts'
import { type Entry, isOverdue, JobTable } from './job-table.ts'
import { Throughput } from './throughput.ts'
import { MemoryWorker } from './worker.ts'

/** Options of `memoryBroker`. */
export interface MemoryBrokerOptions extends KeptOptions {
  /** Names the queue, in events and for the limits of its workers. @default 'jobs' */
  name?: string | undefined
}

/**
 * Keeps jobs in this process, for development and tests. The jobs end with the process.
 * @throws SluiceError when an option is unknown or out of range
 */
export function memoryBroker(options: MemoryBrokerOptions = {}): Broker {
  knownFields(options, 'memoryBroker', ['name', 'maxDeadLetters', 'maxKept', 'maxKeptBytes'])
  return new MemoryBroker(options.name ?? 'jobs', keptBounds(options))
}

class MemoryBroker implements Broker {
  readonly isShared = false
  readonly name: string
  readonly #jobs: JobTable
  readonly #throughput = new Throughput()
  readonly #workers = new Set<MemoryWorker>()
  #isClosed = false

  constructor(name: string, kept: KeptBounds) {
    this.name = name
    this.#jobs = new JobTable(kept)
  }

  async enqueue(job: NewJob, terms: EnqueueTerms): Promise<Enqueued> {
    this.#checkOpen()
    const nowMs = Date.now()
    this.#jobs.forgetEnded(nowMs)
    const { idempotency } = terms
    const owner = idempotency && ownerOf(job.identity, idempotency.key)
    const first = owner === undefined ? undefined : this.#jobs.firstWith(owner, nowMs)
    if (idempotency && first) {
      if (first.fingerprint !== idempotency.fingerprint) return { outcome: 'mismatch' }
      return { outcome: 'known', id: first.job.id }
    }
    if (this.#fullBound(job, terms)) {
      for (const entry of this.#jobs.overdue(nowMs)) {
        this.#end(entry, { outcome: 'expired' })
        terms.onExpired?.(entry.job)
      }
    }
    const bound = this.#fullBound(job, terms)
    if (bound) return { outcome: 'full', bound }
    this.#throughput.came(nowMs, this.#jobs.depth)
    const { payload, ...others } = job
    this.#jobs.add({
      job: others,
      // JSON, as with a real broker, so that development shows what production does.
      payload: JSON.stringify(payload),
      state: 'pending',
      dueAt: 0,
      attempts: 0,
      hasBegun: false,
      retentionMs: terms.retentionMs,
      owner,
      fingerprint: idempotency?.fingerprint,
    })
    this.#wakeWorkers()
    return { outcome: 'enqueued', id: job.id }
  }

  async find(identity: string, idempotencyKey: string): Promise<string | undefined> {
    this.#checkOpen()
    const nowMs = Date.now()
    this.#jobs.forgetEnded(nowMs)
    return this.#jobs.firstWith(ownerOf(identity, idempotencyKey), nowMs)?.job.id
  }

  async status(id: string): Promise<JobStatus | undefined> {
    this.#checkOpen()
    const nowMs = Date.now()
    this.#jobs.forgetEnded(nowMs)
    const entry = this.#jobs.get(id)
    if (!entry) return undefined
    return isOverdue(entry, nowMs) ? { ...statusOf(entry), state: 'expired' } : statusOf(entry)
  }

  async cancel(id: string): Promise<Cancelled> {
    this.#checkOpen()
    const entry = this.#jobs.get(id)
    if (!entry) return 'unknown'
    if (!isOpen(entry)) return entry.state === 'cancelled' ? 'cancelled' : 'finished'
    if (isOverdue(entry, Date.now())) return 'finished'
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
    return { depth, running, dead, oldestMs, ...this.#throughput.rates(nowMs) }
  }

  work(run: RunJob, { concurrency }: WorkOptions): MemoryWorker {
    this.#checkOpen()
    const worker = new MemoryWorker({
      concurrency,
      take: () => this.#jobs.take(Date.now()),
      nextAt: () => this.#jobs.nextAt,
      run: async (entry, signal) => {
        const settlement = await settled(run, entry, signal)
        this.#end(entry, settlement)
        settlement.onSettled?.()
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

  async forget(id: string): Promise<boolean> {
    const entry = this.#jobs.get(id)
    if (entry?.state !== 'failed') return false
    this.#jobs.forget(entry)
    return true
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#workers].map((worker) => worker.close()))
    this.#jobs.close()
  }

  #fullBound(
    { identity }: NewJob,
    { maxDepth, maxDepthPerIdentity }: EnqueueTerms,
  ): 'queue' | 'identity' | undefined {
    if (this.#jobs.depth >= maxDepth) return 'queue'
    return this.#jobs.depthOf(identity) >= maxDepthPerIdentity ? 'identity' : undefined
  }

  #end(entry: Entry, settlement: Settlement): void {
    const nowMs = Date.now()
    this.#jobs.settle(entry, settlement, nowMs)
    if (!isOpen(entry)) this.#throughput.went(nowMs)
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

/** One run of a job. No run is interrupted here: the jobs end with the process. */
async function settled(run: RunJob, entry: Entry, signal: AbortSignal): Promise<Settlement> {
  const delivery = {
    hasBegun: entry.hasBegun,
    interrupted: 0,
    async begin() {
      entry.hasBegun = true
    },
  }
  try {
    const payload = JSON.parse(entry.payload ?? 'null')
    return await run({ ...entry.job, payload, attempt: entry.attempts + 1 }, signal, delivery)
  } catch (error) {
    return { outcome: 'dead', error: errorText(error) }
  }
}

function statusOf({ job, state, attempts, result, error }: Entry): JobStatus {
  const { id, identity, enqueuedAt } = job
  const known = result === undefined ? undefined : JSON.parse(result)
  return { id, identity, state, enqueuedAt, attempts, result: known, error }
}
