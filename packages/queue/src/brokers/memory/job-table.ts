import { maxTimerMs } from '@sluice/core'
import type { Depth, EnqueueTerms, Page } from '../../broker.ts'
import { isOpen, type JobState } from '../../job.ts'
import { cancellation } from '../job-runs.ts'
import type {
  Ending,
  FoundJob,
  JobTable,
  Placed,
  PutBack,
  RunMark,
  TakenJob,
  WaitingEnd,
  WaitingEnded,
} from '../job-table.ts'
import { bytesOfEnded, type KeptBounds } from '../options.ts'
import { recordKey, type StoredJob } from '../stored-job.ts'
import { Throughput } from './throughput.ts'

/** A job and its outcome. */
interface Entry {
  readonly job: Omit<StoredJob, 'payload'>
  /** The payload as JSON; dropped when the job ends and cannot be retried. */
  payload: string | undefined
  state: JobState
  /** Earliest time of the next run. */
  dueAt: number
  attempts: number
  /** True once a handler was called for the job. Then the job does not expire. */
  hasBegun: boolean
  /** As JSON. */
  result?: string
  error?: string | undefined
  endedAt?: number | undefined
  /** Approximate size of the job after its end, in bytes. */
  keptBytes: number
  /** Stops the run of the job, while it runs. */
  running?: AbortController | undefined
  /** Forgets the job after its retention. */
  forgetting?: NodeJS.Timeout | undefined
}

/** Number of waiting jobs that one search for expired jobs looks at. */
const lookedAtOnce = 100

/** Jobs by id, in order of arrival. */
export class MemoryJobTable implements JobTable {
  readonly #all = new Map<string, Entry>()
  readonly #waiting = new Set<Entry>()
  readonly #open = new Set<Entry>()
  readonly #completed: Kept
  readonly #dead: Kept
  /** Jobs by idempotency key. */
  readonly #byRecord = new Map<string, Entry>()
  readonly #depths = new Map<string, number>()
  readonly #throughput = new Throughput()

  constructor({ maxKept, maxDeadLetters, maxKeptBytes }: KeptBounds) {
    this.#completed = new Kept(maxKept, maxKeptBytes)
    this.#dead = new Kept(maxDeadLetters, maxKeptBytes)
  }

  /** Time at which the next waiting job is due. */
  get nextAt(): number | undefined {
    let nextAt: number | undefined
    for (const { dueAt } of this.#waiting) {
      if (nextAt === undefined || dueAt < nextAt) nextAt = dueAt
      if (dueAt === 0) break
    }
    return nextAt
  }

  async place(job: StoredJob, terms: EnqueueTerms): Promise<Placed> {
    const { payload, ...others } = job
    const { id, identity, record } = others
    const first = record && this.#firstWith(record.key)
    if (first) {
      const isSame = first.job.record?.fingerprint === record.fingerprint
      return isSame ? { outcome: 'known', id: first.job.id } : { outcome: 'mismatch' }
    }
    const isFull = this.#open.size >= terms.maxDepth
    if (isFull || this.#depthOf(identity) >= terms.maxDepthPerIdentity) {
      return { outcome: 'full', bound: isFull ? 'queue' : 'identity', hasExpired: true }
    }
    this.#throughput.came(Date.now(), this.#open.size)
    const entry: Entry = {
      job: others,
      // JSON, as with a real broker, so that development behaves like production.
      payload: JSON.stringify(payload),
      ...{ state: 'pending', dueAt: 0, attempts: 0, hasBegun: false, keptBytes: 0 },
    }
    this.#all.set(id, entry)
    this.#opened(entry)
    return { outcome: 'placed', id, isKnown: false }
  }

  async expired(): Promise<readonly string[]> {
    const nowMs = Date.now()
    const ids: string[] = []
    let looked = 0
    for (const { job, hasBegun } of this.#waiting) {
      if (!hasBegun && job.expiresAt !== undefined && job.expiresAt <= nowMs) ids.push(job.id)
      looked += 1
      if (looked === lookedAtOnce) break
    }
    return ids
  }

  async find(id: string): Promise<FoundJob | undefined> {
    const entry = this.#all.get(id)
    return entry && foundJob(entry)
  }

  async findByKey(identity: string, idempotencyKey: string): Promise<string | undefined> {
    return this.#firstWith(recordKey(identity, idempotencyKey))?.job.id
  }

  async depth(): Promise<Depth> {
    const nowMs = Date.now()
    const depth = this.#open.size
    const [oldest] = this.#open
    return {
      ...{ depth, running: depth - this.#waiting.size, dead: this.#dead.entries.size },
      oldestMs: Math.max(0, nowMs - (oldest?.job.enqueuedAt ?? nowMs)),
      ...this.#throughput.rates(nowMs),
    }
  }

  async deadLetters({ offset, limit }: Page): Promise<readonly FoundJob[]> {
    const newestFirst = [...this.#dead.entries].reverse()
    return newestFirst.slice(offset, offset + limit).map(foundJob)
  }

  async endWaiting({ id }: StoredJob, how: WaitingEnd): Promise<WaitingEnded> {
    const entry = this.#all.get(id)
    if (!entry) return 'unknown'
    if (!isOpen(entry)) return 'finished'
    if (how === 'cancelled') entry.running?.abort(cancellation())
    if (entry.running) return 'running'
    this.#close(entry, how === 'cancelled' ? 'cancelled' : 'expired')
    return 'ended'
  }

  async reopen({ id }: StoredJob): Promise<number> {
    const entry = this.#all.get(id)
    if (!entry || !this.#dead.delete(entry)) return 0
    entry.state = 'pending'
    entry.endedAt = undefined
    entry.attempts = 0
    entry.dueAt = 0
    entry.hasBegun = true
    this.#opened(entry)
    return 1
  }

  async forget({ id }: StoredJob): Promise<boolean> {
    const entry = this.#all.get(id)
    if (!entry || !this.#dead.delete(entry)) return false
    this.#forget(entry)
    return true
  }

  /** Takes the first job that is due, to run it. */
  take(nowMs: number): (TakenJob & { readonly controller: AbortController }) | undefined {
    for (const entry of this.#waiting) {
      if (entry.dueAt > nowMs) continue
      this.#waiting.delete(entry)
      entry.state = 'running'
      const controller = new AbortController()
      entry.running = controller
      const { attempts, hasBegun } = entry
      // No run is interrupted here: the jobs end with the process.
      const notes = { token: '', attempts, hasBegun, interrupted: 0, isToStop: false }
      const job = { ...entry.job, payload: JSON.parse(entry.payload ?? 'null') }
      return { job, ...notes, controller }
    }
    return undefined
  }

  async begin({ id }: StoredJob): Promise<boolean> {
    const entry = this.#all.get(id)
    if (entry) entry.hasBegun = true
    return entry !== undefined
  }

  async end({ id }: StoredJob, _run: RunMark, settlement: Ending): Promise<boolean> {
    const entry = this.#all.get(id)
    if (!entry) return false
    const { outcome } = settlement
    if (outcome === 'done' || outcome === 'dead') entry.attempts += 1
    if (outcome === 'done') entry.result = JSON.stringify(settlement.result ?? null)
    if (outcome === 'dead') entry.error = settlement.error
    this.#close(entry, outcome === 'dead' ? 'failed' : outcome)
    return true
  }

  async putBack({ id }: StoredJob, _run: RunMark, back: PutBack): Promise<number> {
    const entry = this.#all.get(id)
    if (!entry) return -1
    entry.running = undefined
    entry.state = 'pending'
    if (back.outcome !== 'returned') entry.dueAt = Date.now() + back.delayMs
    if (back.outcome === 'retry') {
      entry.attempts += 1
      entry.error = back.error
    }
    this.#waiting.add(entry)
    return 1
  }

  /** Stops the timers. */
  close(): void {
    for (const { forgetting } of this.#all.values()) clearTimeout(forgetting)
  }

  /** Finds the job of an idempotency key. A dead letter is kept longer than its key. */
  #firstWith(record: string): Entry | undefined {
    const entry = this.#byRecord.get(record)
    if (!entry || forgottenAt(entry) > Date.now()) return entry
    this.#byRecord.delete(record)
    return undefined
  }

  #depthOf(identity: string): number {
    return this.#depths.get(identity) ?? 0
  }

  #opened(entry: Entry): void {
    const { identity, record } = entry.job
    // The idempotency key may belong to a newer job by now, which keeps it.
    if (record && !this.#byRecord.has(record.key)) this.#byRecord.set(record.key, entry)
    this.#open.add(entry)
    this.#waiting.add(entry)
    this.#depths.set(identity, this.#depthOf(identity) + 1)
  }

  #close(entry: Entry, state: Exclude<JobState, 'pending' | 'running'>): void {
    const nowMs = Date.now()
    const { identity } = entry.job
    entry.running = undefined
    entry.state = state
    entry.endedAt = nowMs
    this.#throughput.went(nowMs)
    this.#open.delete(entry)
    this.#waiting.delete(entry)
    const depth = this.#depthOf(identity) - 1
    if (depth === 0) this.#depths.delete(identity)
    else this.#depths.set(identity, depth)
    const isDead = state === 'failed'
    if (!isDead) {
      entry.payload = undefined
      this.#forgetOnTime(entry)
    }
    for (const oldest of (isDead ? this.#dead : this.#completed).add(entry)) this.#forget(oldest)
  }

  /** Forgets an outcome after its retention. Dead letters stay. */
  #forgetOnTime(entry: Entry): void {
    const leftMs = forgottenAt(entry) - Date.now()
    const again = (): void => {
      if (forgottenAt(entry) <= Date.now()) this.#forget(entry)
      else this.#forgetOnTime(entry)
    }
    entry.forgetting = setTimeout(again, Math.min(leftMs, maxTimerMs)).unref()
  }

  #forget(entry: Entry): void {
    const { id, record } = entry.job
    clearTimeout(entry.forgetting)
    this.#all.delete(id)
    this.#completed.delete(entry)
    if (record && this.#byRecord.get(record.key) === entry) this.#byRecord.delete(record.key)
  }
}

/** Ended jobs in the order in which they ended, within bounds. */
class Kept {
  readonly entries = new Set<Entry>()
  readonly #max: { readonly count: number; readonly bytes: number }
  #bytes = 0

  constructor(count: number, bytes: number) {
    this.#max = { count, bytes }
  }

  /** Removes the oldest outcomes that exceed the bounds. */
  add(entry: Entry): Entry[] {
    const { payload = '', result = '', error = '' } = entry
    entry.keptBytes = bytesOfEnded + Buffer.byteLength(payload + result + error)
    this.#bytes += entry.keptBytes
    this.entries.add(entry)
    const tooMuch: Entry[] = []
    for (const oldest of this.entries) {
      if (this.entries.size <= this.#max.count && this.#bytes <= this.#max.bytes) break
      this.delete(oldest)
      tooMuch.push(oldest)
    }
    return tooMuch
  }

  delete(entry: Entry): boolean {
    const isKept = this.entries.delete(entry)
    if (isKept) this.#bytes -= entry.keptBytes
    return isKept
  }
}

function forgottenAt({ endedAt = Number.POSITIVE_INFINITY, job }: Entry): number {
  return endedAt + job.retentionMs
}

function foundJob(entry: Entry): FoundJob {
  const { job, state, attempts, error, hasBegun, endedAt } = entry
  const { id, identity, enqueuedAt } = job
  const result = entry.result === undefined ? undefined : JSON.parse(entry.result)
  const status = { id, identity, state, enqueuedAt, attempts, result, error }
  return { job: { ...job, payload: undefined }, status, hasBegun, endedAt }
}
