import type { MaybePromise, Store } from '@sluice/core'

/** A store that may have a fleet. */
export type FleetStore = Pick<Store, 'fleet' | 'keys' | 'space'>

/** A part of another process's report, as sent. */
export interface Heard {
  readonly member: string
  readonly part: unknown
}

/** A topic that the processes of a fleet exchange. */
export interface FleetSubject {
  /** Creates this process's part of a report. @param instances number of reporting processes */
  report(instances: number): MaybePromise<unknown>
  /** Receives the parts of all other processes. */
  hear(heard: readonly Heard[]): void
}

/** The processes that an answer covers. */
export interface Scope {
  /**
   * `fleet`: includes reports of other processes from the last seconds. `process`: only this
   * process, since its store has no fleet or is unavailable.
   */
  readonly scope: 'process' | 'fleet'
  /** Number of processes in the answer. */
  readonly processes: number
}

/** Interval (ms) at which the processes of a fleet report. */
export const intervalMs = 3_000
/** Time (ms) after which a silent process is ignored. */
const ttlMs = 4 * intervalMs

/** Sends this process's counts to the other processes of its fleet, and receives theirs. */
export class FleetExchange {
  readonly #store: FleetStore
  readonly #subjects: readonly FleetSubject[]
  readonly #member = globalThis.crypto.randomUUID()
  #others = 0
  #heardAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(store: FleetStore, subjects: readonly FleetSubject[]) {
    this.#store = store
    this.#subjects = subjects
    if (store.fleet?.shareReport) this.#shareLater()
  }

  /** The currently known processes. */
  get scope(): Scope {
    return performance.now() - this.#heardAt < ttlMs
      ? { scope: 'fleet', processes: 1 + this.#others }
      : { scope: 'process', processes: 1 }
  }

  /** Stops the exchange: from now on answers cover only this process. */
  close(): void {
    this.#isClosed = true
    this.#heardAt = Number.NEGATIVE_INFINITY
    clearTimeout(this.#timer)
  }

  #shareLater(): void {
    // Random, so that processes started together do not report together.
    this.#timer = setTimeout(() => void this.#share(), intervalMs * (0.75 + Math.random() / 2))
    this.#timer.unref()
  }

  async #share(): Promise<void> {
    try {
      const instances = Math.max(1, this.#store.fleet?.instances ?? 1)
      const own = await Promise.all(this.#subjects.map((subject) => subject.report(instances)))
      const text = JSON.stringify([this.#member, ...own])
      const report = { topic: 'metrics', member: this.#member, ttlMs, text }
      const texts = (await this.#store.fleet?.shareReport?.(report)) ?? []
      if (this.#isClosed) return
      const reports = texts.flatMap(read)
      for (const [index, subject] of this.#subjects.entries()) {
        subject.hear(
          reports.map(([member, ...parts]) => ({ member: String(member), part: parts[index] })),
        )
      }
      this.#others = reports.length
      this.#heardAt = performance.now()
    } catch {
      // The store is unavailable: until it is back, answers say that they cover only this process.
    }
    if (!this.#isClosed) this.#shareLater()
  }
}

/** Parses a report; empty if it is not JSON. */
function read(text: string): readonly (readonly unknown[])[] {
  try {
    return [list(JSON.parse(text))]
  } catch {
    return []
  }
}

/** Returns as many of a report's first rows as fit into a number of characters. */
export function rowsWithin(room: number, rows: readonly unknown[]): readonly unknown[] {
  let length = 0
  const first = rows.findIndex((row) => {
    length += JSON.stringify(row).length + 1
    return length > room
  })
  return first === -1 ? rows : rows.slice(0, first)
}

/** Reads a value of a report, which a process of another version may have written. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}
