import { SluiceError } from '@sluice/core'
import type {
  Broker,
  Enqueued,
  EnqueueTerms,
  Job,
  JobStatus,
  NewJob,
  RunJob,
  Settlement,
  WorkOptions,
} from '@sluice/queue'
import { ArrayWorker } from './array-worker.ts'

/** A job, and everything the broker knows about it. */
interface Entry {
  readonly job: NewJob
  readonly terms: EnqueueTerms
  status: JobStatus
  dueAt: number
  hasBegun: boolean
  forgetAt: number
  running?: AbortController | undefined
}

/** Keeps jobs in an array, just as a broker based on a table would keep them in rows. */
export function arrayBroker(name = 'jobs'): Broker {
  return new ArrayBroker(name)
}

class ArrayBroker implements Broker {
  readonly isShared = false
  readonly name: string
  #entries: Entry[] = []
  readonly #workers = new Set<ArrayWorker>()
  readonly #came: number[] = []
  readonly #ended: number[] = []
  #isClosed = false

  constructor(name: string) {
    this.name = name
  }

  async enqueue(job: NewJob, terms: EnqueueTerms): Promise<Enqueued> {
    this.#look()
    const { maxDepth, maxDepthPerIdentity, idempotency } = terms
    const known = idempotency && this.#withKey(job.identity, idempotency.key)
    if (known) {
      const isSame = known.terms.idempotency?.fingerprint === idempotency.fingerprint
      return isSame ? { outcome: 'known', id: known.job.id } : { outcome: 'mismatch' }
    }
    const isFull = (): boolean => this.#entries.filter(isOpen).length >= maxDepth
    if (isFull()) for (const entry of this.#entries.filter(isOverdue)) this.#expire(entry)
    if (isFull()) return { outcome: 'full', bound: 'queue' }
    const own = this.#entries.filter(
      (entry) => isOpen(entry) && entry.job.identity === job.identity,
    )
    if (own.length >= maxDepthPerIdentity) return { outcome: 'full', bound: 'identity' }
    this.#came.push(Date.now())
    const { id, identity, enqueuedAt } = job
    this.#entries.push({
      job: structuredClone(job),
      terms,
      status: { id, identity, enqueuedAt, state: 'pending', attempts: 0 },
      dueAt: 0,
      hasBegun: false,
      forgetAt: Number.POSITIVE_INFINITY,
    })
    this.#wake()
    return { outcome: 'enqueued', id }
  }

  async find(identity: string, idempotencyKey: string): Promise<string | undefined> {
    this.#look()
    return this.#withKey(identity, idempotencyKey)?.job.id
  }

  async status(id: string): Promise<JobStatus | undefined> {
    this.#look()
    const entry = this.#entry(id)
    return entry && isOverdue(entry) ? { ...entry.status, state: 'expired' } : entry?.status
  }

  async cancel(id: string): Promise<'cancelled' | 'cancelling' | 'finished' | 'unknown'> {
    this.#look()
    const entry = this.#entry(id)
    if (!entry) return 'unknown'
    if (!isOpen(entry)) return entry.status.state === 'cancelled' ? 'cancelled' : 'finished'
    if (isOverdue(entry)) return 'finished'
    if (entry.running) {
      entry.running.abort(new DOMException('the job was cancelled', 'AbortError'))
      return 'cancelling'
    }
    this.#settle(entry, { outcome: 'cancelled' })
    return 'cancelled'
  }

  async depth() {
    this.#look()
    const open = this.#entries.filter(isOpen)
    const now = Date.now()
    const rate = (times: readonly number[]): number =>
      times.filter((at) => at > now - 30_000).length
    return {
      depth: open.length,
      running: open.filter(({ running }) => running).length,
      dead: this.#entries.filter(isDead).length,
      oldestMs: Math.max(0, ...open.map(({ job }) => now - job.enqueuedAt)),
      inPerSecond: rate(this.#came) / 30,
      outPerSecond: rate(this.#ended) / 30,
    }
  }

  work(run: RunJob, { concurrency }: WorkOptions): ArrayWorker {
    this.#look()
    const worker = new ArrayWorker(concurrency, {
      take: () => this.#take(run),
      nextAt: () => Math.min(...this.#entries.filter(isPending).map(({ dueAt }) => dueAt)),
    })
    this.#workers.add(worker)
    worker.wake()
    return worker
  }

  async deadLetters({ offset, limit }: { offset: number; limit: number }) {
    const dead = this.#entries.filter(isDead).map(({ status }) => status)
    return dead.reverse().slice(offset, offset + limit)
  }

  async retry(id: string): Promise<boolean> {
    const entry = this.#entry(id)
    if (!entry || !isDead(entry)) return false
    entry.status = { ...entry.status, state: 'pending', attempts: 0 }
    Object.assign(entry, { dueAt: 0, hasBegun: true })
    this.#wake()
    return true
  }

  async forget(id: string): Promise<boolean> {
    const entry = this.#entry(id)
    if (!entry || !isDead(entry)) return false
    this.#entries = this.#entries.filter((other) => other !== entry)
    return true
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#workers].map((worker) => worker.close()))
  }

  /** Takes the first job that is due. Returns its run, or `undefined`. */
  #take(run: RunJob): Promise<void> | undefined {
    const entry = this.#entries.find(
      ({ status, dueAt }) => status.state === 'pending' && dueAt <= Date.now(),
    )
    if (!entry) return undefined
    entry.status = { ...entry.status, state: 'running' }
    entry.running = new AbortController()
    return this.#run(run, entry, entry.running.signal)
  }

  async #run(run: RunJob, entry: Entry, signal: AbortSignal): Promise<void> {
    const job: Job = { ...entry.job, attempt: entry.status.attempts + 1 }
    const begin = async (): Promise<void> => {
      entry.hasBegun = true
    }
    // No worker of another process can die here, so runs are never interrupted.
    const delivery = { hasBegun: entry.hasBegun, interrupted: 0, begin }
    const settlement = await run(job, signal, delivery).catch(
      (error: unknown): Settlement => ({ outcome: 'dead', error: describe(error) }),
    )
    this.#settle(entry, settlement)
    settlement.onSettled?.()
  }

  #settle(entry: Entry, settlement: Settlement): void {
    const now = Date.now()
    const { status } = entry
    entry.running = undefined
    switch (settlement.outcome) {
      case 'returned':
        entry.status = { ...status, state: 'pending' }
        break
      case 'postponed':
        entry.status = { ...status, state: 'pending' }
        entry.dueAt = now + settlement.delayMs
        break
      case 'retry': {
        const { error, delayMs } = settlement
        entry.status = { ...status, state: 'pending', attempts: status.attempts + 1, error }
        entry.dueAt = now + delayMs
        break
      }
      case 'done': {
        const { result } = settlement
        entry.status = { ...status, state: 'done', attempts: status.attempts + 1, result }
        break
      }
      case 'dead': {
        const { error } = settlement
        entry.status = { ...status, state: 'failed', attempts: status.attempts + 1, error }
        // The newest dead letter is the last.
        this.#entries = [...this.#entries.filter((other) => other !== entry), entry]
        break
      }
      default:
        entry.status = { ...status, state: settlement.outcome }
    }
    if (!isOpen(entry)) {
      this.#ended.push(now)
      if (!isDead(entry)) entry.forgetAt = now + entry.terms.retentionMs
    }
    this.#wake()
  }

  #expire(entry: Entry): void {
    this.#settle(entry, { outcome: 'expired' })
    entry.terms.onExpired?.(entry.job)
  }

  /** Runs before each call: nothing works after `close`, and old outcomes are dropped. */
  #look(): void {
    if (this.#isClosed) throw new SluiceError('SLUICE_BROKER_CLOSED', 'the broker was closed')
    const now = Date.now()
    this.#entries = this.#entries.filter(({ forgetAt }) => forgetAt > now)
  }

  #wake(): void {
    for (const worker of this.#workers) worker.wake()
  }

  #entry(id: string): Entry | undefined {
    return this.#entries.find(({ job }) => job.id === id)
  }

  #withKey(identity: string, key: string): Entry | undefined {
    return this.#entries.find(
      ({ job, terms }) => job.identity === identity && terms.idempotency?.key === key,
    )
  }
}

function isPending({ status }: Entry): boolean {
  return status.state === 'pending'
}

function isOpen({ status }: Entry): boolean {
  return status.state === 'pending' || status.state === 'running'
}

function isDead({ status }: Entry): boolean {
  return status.state === 'failed'
}

/** True if a job has expired without ever starting. */
function isOverdue({ job, status, hasBegun }: Entry): boolean {
  return status.state === 'pending' && !hasBegun && (job.expiresAt ?? Infinity) <= Date.now()
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : 'no error message'
}
