import type { Settlement } from '../broker.ts'
import type { JobState, NewJob } from '../job.ts'

/** A job of the memory broker, and what became of it. */
export interface Entry {
  readonly job: NewJob
  state: JobState
  /** Not before: the time of its next attempt. */
  dueAt: number
  attempts: number
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
  readonly #maxDead: number

  constructor(maxDead: number) {
    this.#maxDead = maxDead
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

  firstWith(owner: string): Entry | undefined {
    return this.#byOwner.get(owner)
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
    if (outcome === 'returned' || outcome === 'retry') {
      entry.state = 'pending'
      if (outcome === 'retry') {
        entry.attempts += 1
        entry.error = settlement.error
        entry.dueAt = nowMs + settlement.delayMs
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
    if (outcome === 'dead') this.#bury(entry)
    else this.#ended.add(entry)
  }

  /** Has a dead letter wait again. */
  reopen(entry: Entry): void {
    this.#dead.delete(entry)
    entry.state = 'pending'
    entry.attempts = 0
    entry.dueAt = 0
    this.#opened(entry)
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

  #bury(entry: Entry): void {
    this.#dead.add(entry)
    for (const oldest of this.#dead) {
      if (this.#dead.size <= this.#maxDead) return
      this.#dead.delete(oldest)
      this.#forget(oldest)
    }
  }

  #forget(entry: Entry): void {
    this.#all.delete(entry.job.id)
    if (entry.owner !== undefined && this.#byOwner.get(entry.owner) === entry) {
      this.#byOwner.delete(entry.owner)
    }
  }
}
