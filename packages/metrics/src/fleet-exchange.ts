import type { MaybePromise, Store } from '@sluice/core'

/** A store that may have a fleet. */
export type FleetStore = Pick<Store, 'fleet' | 'keys' | 'space'>

/** A part of the report of another process, as it was sent. */
export interface Heard {
  readonly member: string
  readonly part: unknown
}

/** A subject that the processes of a fleet tell each other of. */
export interface FleetSubject {
  /** Makes this process' part of a report. @param instances number of processes that report */
  report(instances: number): MaybePromise<unknown>
  /** Takes the parts of all other processes. */
  hear(heard: readonly Heard[]): void
}

/** The processes that an answer knows of. */
export interface Scope {
  /**
   * `fleet`: with the reports of other processes within the last seconds. `process`: this process
   * alone, since its store has no fleet or is out of reach.
   */
  readonly scope: 'process' | 'fleet'
  /** Number of processes in the answer. */
  readonly processes: number
}

/** Interval (ms) at which the processes of a fleet report. */
export const intervalMs = 3_000
/** A process that was not heard of for so long has no say. */
const ttlMs = 4 * intervalMs

/** Sends what this process counted to the other processes of its fleet, and hears theirs. */
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

  /** The processes that are known now. */
  get scope(): Scope {
    return performance.now() - this.#heardAt < ttlMs
      ? { scope: 'fleet', processes: 1 + this.#others }
      : { scope: 'process', processes: 1 }
  }

  /** Ends the exchange: from now on answers know this process alone. */
  close(): void {
    this.#isClosed = true
    this.#heardAt = Number.NEGATIVE_INFINITY
    clearTimeout(this.#timer)
  }

  #shareLater(): void {
    // Processes that start together do not report together.
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
      // The store is away: answers say that they know this process alone, until it is back.
    }
    if (!this.#isClosed) this.#shareLater()
  }
}

/** Reads a report; none where it is no JSON. */
function read(text: string): readonly (readonly unknown[])[] {
  try {
    return [list(JSON.parse(text))]
  } catch {
    return []
  }
}

/** Returns the first rows of a part of a report, as many as fit into so many characters. */
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
