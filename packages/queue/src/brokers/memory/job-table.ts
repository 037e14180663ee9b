import type { Settlement } from '../../broker.ts'
import { isOpen, type JobState, type NewJob } from '../../job.ts'
import { bytesOfEnded, type KeptBounds } from '../kept-bounds.ts'

/** A job of the memory broker, and its outcome. */
export interface Entry {
  readonly job: Omit<NewJob, 'payload'>
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
  endedAt?: number
  /** Bytes, approximately, that the job takes after its end. */
  keptBytes?: number
  /** Cancels the run of the job, while it runs. */
  running?: AbortController | undefined
  readonly retentionMs: number
  /** Identity and idempotency key. */
  readonly owner: string | undefined
  readonly fingerprint: string | undefined
}

/**
 * Shortest time (ms) between two searches for expired jobs: many requests may find the queue full
 * at once.
 */
const lookedAtOnce = 100

/** Longest time (ms) between two searches for outcomes to drop, because a clock may be set. */
const maxLookMs = 60_000

/** Jobs by id, in the order in which they came. */
export class JobTable {
  readonly #all = new Map<string, Entry>()
  readonly #waiting = new Set<Entry>()
  readonly #open = new Set<Entry>()
  readonly #ended: Ended
  readonly #dead: Ended
  /** Ended jobs by their retention, in the order in which they are forgotten. */
  readonly #byRetention = new Map<number, Set<Entry>>()
  #timer: NodeJS.Timeout | undefined
  #looksAt = Number.POSITIVE_INFINITY
  readonly #byOwner = new Map<string, Entry>()
  readonly #depths = new Map<string, number>()

  constructor({ maxKept, maxDeadLetters, maxKeptBytes }: KeptBounds) {
    this.#ended = new Ended(maxKept, maxKeptBytes)
    this.#dead = new Ended(maxDeadLetters, maxKeptBytes)
  }

  get depth(): number {
    return this.#open.size
  }

  get running(): number {
    return this.#open.size - this.#waiting.size
  }

  get dead(): number {
    return this.#dead.entries.size
  }

  get oldestAt(): number | undefined {
    for (const { job } of this.#open) return job.enqueuedAt
    return undefined
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

  depthOf(identity: string): number {
    return this.#depths.get(identity) ?? 0
  }

  get(id: string): Entry | undefined {
    return this.#all.get(id)
  }

  /**
   * Finds the job that an idempotency key stands for. Dead letters are kept longer than their keys.
   */
  firstWith(owner: string, nowMs: number): Entry | undefined {
    const entry = this.#byOwner.get(owner)
    if (entry && !isOpen(entry) && forgottenAt(entry) <= nowMs) {
      this.#byOwner.delete(owner)
      return undefined
    }
    return entry
  }

  deadLetters(): Entry[] {
    return [...this.#dead.entries].reverse()
  }

  add(entry: Entry): void {
    this.#all.set(entry.job.id, entry)
    if (entry.owner !== undefined) this.#byOwner.set(entry.owner, entry)
    this.#opened(entry)
  }

  /** Takes the first job that is due, to run it. */
  take(nowMs: number): Entry | undefined {
    for (const entry of this.#waiting) {
      if (entry.dueAt > nowMs) continue
      this.#waiting.delete(entry)
      entry.state = 'running'
      entry.running = new AbortController()
      return entry
    }
    return undefined
  }

  settle(entry: Entry, settlement: Settlement, nowMs: number): void {
    const { outcome } = settlement
    entry.running = undefined
    if (outcome === 'returned' || outcome === 'postponed' || outcome === 'retry') {
      entry.state = 'pending'
      if (outcome !== 'returned') entry.dueAt = nowMs + settlement.delayMs
      if (outcome === 'retry') {
        entry.attempts += 1
        entry.error = settlement.error
      }
      this.#waiting.add(entry)
      return
    }
    if (outcome === 'done' || outcome === 'dead') entry.attempts += 1
    if (outcome === 'done') entry.result = JSON.stringify(settlement.result ?? null)
    if (outcome === 'dead') entry.error = settlement.error
    entry.state = outcome === 'dead' ? 'failed' : outcome
    entry.endedAt = nowMs
    this.#closed(entry)
    if (outcome === 'dead') {
      for (const oldest of this.#dead.add(entry)) this.#forget(oldest)
      return
    }
    entry.payload = undefined
    const alike = this.#byRetention.get(entry.retentionMs) ?? new Set()
    this.#byRetention.set(entry.retentionMs, alike.add(entry))
    for (const oldest of this.#ended.add(entry)) this.#forget(oldest)
    this.#forgetOnTime(nowMs)
  }

  /** Has a dead letter wait again. */
  reopen(entry: Entry): void {
    this.#dead.delete(entry)
    entry.state = 'pending'
    entry.attempts = 0
    entry.dueAt = 0
    entry.hasBegun = true
    // The idempotency key may stand for a newer job by now, which keeps it.
    if (entry.owner !== undefined && !this.#byOwner.has(entry.owner)) {
      this.#byOwner.set(entry.owner, entry)
    }
    this.#opened(entry)
  }

  /** Forgets a dead letter. */
  forget(entry: Entry): void {
    this.#dead.delete(entry)
    this.#forget(entry)
  }

  /** Finds some of the oldest jobs that have expired, and have never begun. */
  overdue(nowMs: number): Entry[] {
    const oldest: Entry[] = []
    for (const entry of this.#waiting) {
      oldest.push(entry)
      if (oldest.length === lookedAtOnce) break
    }
    return oldest.filter((entry) => isOverdue(entry, nowMs))
  }

  /** Drops outcomes whose retention is over. Dead letters stay. */
  forgetEnded(nowMs: number): void {
    for (const alike of this.#byRetention.values()) {
      for (const entry of alike) {
        if (forgottenAt(entry) > nowMs) break
        this.#forget(entry)
      }
    }
  }

  /** Stops the timer. */
  close(): void {
    clearTimeout(this.#timer)
  }

  /** Forgets outcomes on time, even if no other job ends and nobody asks. */
  #forgetOnTime(nowMs: number): void {
    let nextAt = Number.POSITIVE_INFINITY
    for (const [first] of this.#byRetention.values()) {
      if (first) nextAt = Math.min(nextAt, forgottenAt(first))
    }
    if (nextAt >= this.#looksAt) return
    this.#looksAt = nextAt
    clearTimeout(this.#timer)
    const delayMs = Math.min(Math.max(nextAt - nowMs, 1), maxLookMs)
    this.#timer = setTimeout(() => {
      this.#looksAt = Number.POSITIVE_INFINITY
      this.forgetEnded(Date.now())
      this.#forgetOnTime(Date.now())
    }, delayMs).unref()
  }

  #opened(entry: Entry): void {
    this.#open.add(entry)
    this.#waiting.add(entry)
    this.#depths.set(entry.job.identity, this.depthOf(entry.job.identity) + 1)
  }

  #closed(entry: Entry): void {
    this.#open.delete(entry)
    this.#waiting.delete(entry)
    const depth = this.depthOf(entry.job.identity) - 1
    if (depth === 0) this.#depths.delete(entry.job.identity)
    else this.#depths.set(entry.job.identity, depth)
  }

  #forget(entry: Entry): void {
    this.#all.delete(entry.job.id)
    this.#ended.delete(entry)
    const alike = this.#byRetention.get(entry.retentionMs)
    if (alike?.delete(entry) && alike.size === 0) this.#byRetention.delete(entry.retentionMs)
    if (entry.owner !== undefined && this.#byOwner.get(entry.owner) === entry) {
      this.#byOwner.delete(entry.owner)
    }
  }
}

/** Ended jobs in the order of their ends, within their bounds. */
class Ended {
  readonly entries = new Set<Entry>()
  readonly #maxCount: number
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxCount: number, maxBytes: number) {
    this.#maxCount = maxCount
    this.#maxBytes = maxBytes
  }

  /** Takes out the oldest outcomes that exceed the bounds. */
  add(entry: Entry): Entry[] {
    const { payload = '', result = '', error = '' } = entry
    entry.keptBytes = bytesOfEnded + Buffer.byteLength(payload + result + error)
    this.#bytes += entry.keptBytes
    this.entries.add(entry)
    const tooMuch: Entry[] = []
    for (const oldest of this.entries) {
      if (this.entries.size <= this.#maxCount && this.#bytes <= this.#maxBytes) break
      this.delete(oldest)
      tooMuch.push(oldest)
    }
    return tooMuch
  }

  delete(entry: Entry): void {
    if (this.entries.delete(entry)) this.#bytes -= entry.keptBytes ?? 0
  }
}

function forgottenAt({ endedAt = 0, retentionMs }: Entry): number {
  return endedAt + retentionMs
}

/** True if a job still waits, has never begun, and is past its `expiresAt`. */
export function isOverdue({ job: { expiresAt }, state, hasBegun }: Entry, nowMs: number): boolean {
  return state === 'pending' && !hasBegun && expiresAt !== undefined && expiresAt <= nowMs
}
