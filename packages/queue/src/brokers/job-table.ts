import type { Settlement } from '../broker.ts'
import { isOpen, type JobState, type NewJob } from '../job.ts'

/** A job of the memory broker, and what became of it. */
export interface Entry {
  readonly job: NewJob
  state: JobState
  /** Not before: the time of its next attempt. */
  dueAt: number
  attempts: number
  /** Whether a handler was ever called for it: then it does not expire. */
  hasBegun: boolean
  result?: unknown
  error?: string | undefined
  endedAt?: number
  /** Tells its run that the job is cancelled, while it runs. */
  running?: AbortController | undefined
  readonly retentionMs: number
  /** Identity and idempotency key. */
  readonly owner: string | undefined
  readonly fingerprint: string | undefined
}

/** Whoever finds the queue full looks for what has expired, and a herd may. */
const lookedAtOnce = 100

/** How many are kept of what has ended. */
export interface Kept {
  readonly maxDead: number
  readonly maxEnded: number
}

/** Jobs by id, in the order in which they came. */
export class JobTable {
  readonly #all = new Map<string, Entry>()
  readonly #waiting = new Set<Entry>()
  readonly #open = new Set<Entry>()
  /** In the order in which they ended. */
  readonly #ended = new Set<Entry>()
  readonly #dead = new Set<Entry>()
  readonly #byOwner = new Map<string, Entry>()
  readonly #depths = new Map<string, number>()
  readonly #kept: Kept

  constructor(kept: Kept) {
    this.#kept = kept
  }

  get depth(): number {
    return this.#open.size
  }

  get running(): number {
    return this.#open.size - this.#waiting.size
  }

  get dead(): number {
    return this.#dead.size
  }

  get oldestAt(): number | undefined {
    for (const { job } of this.#open) return job.enqueuedAt
    return undefined
  }

  /** When the next job that waits is due. */
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

  /** The job that an idempotency key stands for. Dead letters are kept for longer than their keys. */
  firstWith(owner: string, nowMs: number): Entry | undefined {
    const entry = this.#byOwner.get(owner)
    if (entry && !isOpen(entry) && (entry.endedAt ?? 0) + entry.retentionMs <= nowMs) {
      this.#byOwner.delete(owner)
      return undefined
    }
    return entry
  }

  deadLetters(): Entry[] {
    return [...this.#dead].reverse()
  }

  add(entry: Entry): void {
    this.#all.set(entry.job.id, entry)
    if (entry.owner !== undefined) this.#byOwner.set(entry.owner, entry)
    this.#opened(entry)
  }

  /** The first job that is due, which then runs. */
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
    if (outcome === 'done') entry.result = settlement.result
    if (outcome === 'dead') entry.error = settlement.error
    entry.state = outcome === 'dead' ? 'failed' : outcome
    entry.endedAt = nowMs
    this.#closed(entry)
    const [ended, most] =
      outcome === 'dead' ? [this.#dead, this.#kept.maxDead] : [this.#ended, this.#kept.maxEnded]
    ended.add(entry)
    for (const oldest of ended) {
      if (ended.size <= most) return
      ended.delete(oldest)
      this.#forget(oldest)
    }
  }

  /** Has a dead letter wait again. */
  reopen(entry: Entry): void {
    this.#dead.delete(entry)
    entry.state = 'pending'
    entry.attempts = 0
    entry.dueAt = 0
    entry.hasBegun = true
    // Its key may stand for a newer job by now, which keeps it.
    if (entry.owner !== undefined && !this.#byOwner.has(entry.owner)) {
      this.#byOwner.set(entry.owner, entry)
    }
    this.#opened(entry)
  }

  /** Jobs that have waited longer than they were worth, and have never begun: some of the oldest. */
  overdue(nowMs: number): Entry[] {
    const oldest: Entry[] = []
    for (const entry of this.#waiting) {
      oldest.push(entry)
      if (oldest.length === lookedAtOnce) break
    }
    return oldest.filter((entry) => isOverdue(entry, nowMs))
  }

  /** Drops what ended so long ago that its outcome is not kept any more. Dead letters stay. */
  forgetEnded(nowMs: number): void {
    for (const entry of this.#ended) {
      if ((entry.endedAt ?? 0) + entry.retentionMs > nowMs) return
      this.#ended.delete(entry)
      this.#forget(entry)
    }
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
    if (entry.owner !== undefined && this.#byOwner.get(entry.owner) === entry) {
      this.#byOwner.delete(entry.owner)
    }
  }
}

/** Whether a job waits that is not worth running any more, and that nobody has begun to run. */
export function isOverdue({ job: { expiresAt }, state, hasBegun }: Entry, nowMs: number): boolean {
  return state === 'pending' && !hasBegun && expiresAt !== undefined && expiresAt <= nowMs
}
