import {
  type Instrument,
  type InstrumentName,
  instrumentNames,
  instruments,
} from './instruments.ts'

/** Maximum number of values of a label that grows with the application, such as routes. */
export const maxRoutes = 200
/** Maximum number of series of one metric. */
const maxSeries = 2_000
/** Series with the original labels. The rest is reserved for series with `other`. */
const maxWhole = 1_900
const maxPartly = 1_950
/** Labels that grow with an application. All others have few values, which are kept. */
export const growing: ReadonlySet<string> = new Set(['route', 'policy', 'queue', 'outbound'])
/** The label for values that do not fit. */
export const other = 'other'

/** One series, as read. */
export interface Sample {
  readonly labels: readonly string[]
  readonly value: number
  /**
   * For a histogram: the number of values in each bucket, the last one unbounded. `value` is then
   * their sum.
   */
  readonly buckets?: readonly number[]
}

/** All series of one metric, as read. */
export interface Family {
  readonly name: InstrumentName
  readonly instrument: Instrument
  readonly samples: readonly Sample[]
}

/** Receives each value of a histogram, for a library with its own histograms. */
export type Tap = (value: number, labels: readonly string[]) => void

/**
 * The series of one metric, as numbers in arrays. Labels are resolved to a slot once. Counting is
 * one addition to the slot.
 */
export class Series {
  readonly name: InstrumentName
  readonly #instrument: Instrument
  readonly #slots = new Map<string, number>()
  readonly #labels: (readonly string[])[] = []
  readonly #values: number[] = []
  readonly #bounds: readonly number[]
  readonly #buckets: number[] = []
  readonly #onOverflow: (name: InstrumentName) => void
  /** The values of each label that have a series. */
  readonly #seen: readonly Set<string>[]
  #tap: Tap | undefined

  constructor(name: InstrumentName, onOverflow: (name: InstrumentName) => void) {
    this.name = name
    this.#instrument = instruments[name]
    this.#bounds = this.#instrument.buckets ?? []
    this.#seen = this.#instrument.labels.map(() => new Set())
    this.#onOverflow = onOverflow
  }

  /**
   * Returns the slot of a series. If another series does not fit, growing labels become `other`,
   * new values first.
   */
  slot(...labels: readonly string[]): number {
    const own = this.#slotWithin(maxWhole, labels)
    if (own !== undefined) return own
    this.#onOverflow(this.name)
    const names = this.#instrument.labels
    const grows = (index: number) => growing.has(names[index] ?? '')
    const isNew = (index: number) => this.#seen[index]?.has(labels[index] ?? '') !== true
    const folded = (isFolded: (index: number) => boolean) =>
      labels.map((label, index) => (isFolded(index) ? other : label))
    const partly = folded((index) => isNew(index) && grows(index))
    const whole = folded(() => true)
    return (
      this.#slotWithin(maxPartly, partly) ??
      this.#slotWithin(maxSeries - 1, folded(grows)) ??
      this.#slotWithin(maxSeries, whole) ??
      0
    )
  }

  /** Returns the slot of a series that exists or fits. */
  #slotWithin(most: number, labels: readonly string[]): number | undefined {
    const key = labels.join('\u0000')
    return this.#slots.get(key) ?? (this.#slots.size < most ? this.#make(key, labels) : undefined)
  }

  add(slot: number, by = 1): void {
    this.#values[slot] = (this.#values[slot] ?? 0) + by
  }

  set(slot: number, value: number): void {
    this.#values[slot] = value
  }

  /** Counts one value of a histogram. */
  observe(slot: number, value: number): void {
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket += 1
    const place = slot * (bounds.length + 1) + bucket
    this.#buckets[place] = (this.#buckets[place] ?? 0) + 1
    this.#values[slot] = (this.#values[slot] ?? 0) + value
    if (this.#tap) this.#tap(value, this.#labels[slot] ?? [])
  }

  /** Forwards every further value of a histogram. */
  tap(tap: Tap): void {
    const before = this.#tap
    this.#tap = (value, labels) => {
      before?.(value, labels)
      tap(value, labels)
    }
  }

  clear(): void {
    this.#slots.clear()
    this.#labels.length = 0
    for (const seen of this.#seen) seen.clear()
    this.#values.length = 0
  }

  read(): Family {
    const width = this.#bounds.length + 1
    const samples = this.#labels.map((labels, slot) => {
      const value = this.#values[slot] ?? 0
      if (this.#instrument.kind !== 'histogram') return { labels, value }
      return { labels, value, buckets: this.#buckets.slice(slot * width, (slot + 1) * width) }
    })
    return { name: this.name, instrument: this.#instrument, samples }
  }

  #make(key: string, labels: readonly string[]): number {
    const slot = this.#labels.length
    this.#slots.set(key, slot)
    this.#labels.push(labels)
    for (const [index, label] of labels.entries()) this.#seen[index]?.add(label)
    this.#values.push(0)
    if (this.#instrument.kind === 'histogram') {
      for (let i = 0; i <= this.#bounds.length; i += 1) this.#buckets.push(0)
    }
    return slot
  }
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/** All series of all metrics. */
export class SeriesTable {
  readonly #series: ReadonlyMap<InstrumentName, Series>

  constructor() {
    const note = (name: InstrumentName) => this.add('sluice_series_overflow_total', 1, name)
    this.#series = new Map(instrumentNames.map((name) => [name, new Series(name, note)]))
    // Prometheus sees an increase only if it has seen the series before.
    const overflow = this.of('sluice_series_overflow_total')
    const bounded = instrumentNames.filter((name) => instruments[name].labels.length > 0)
    for (const name of ['route', ...bounded]) overflow.slot(name)
  }

  of(name: InstrumentName): Series {
    const series = this.#series.get(name)
    if (!series) throw new Error(`there is no metric ${name}`)
    return series
  }

  add(name: InstrumentName, by: number, ...labels: readonly string[]): void {
    const series = this.of(name)
    series.add(series.slot(...labels), by)
  }

  set(name: InstrumentName, value: number, ...labels: readonly string[]): void {
    const series = this.of(name)
    series.set(series.slot(...labels), value)
  }

  observe(name: InstrumentName, value: number, ...labels: readonly string[]): void {
    const series = this.of(name)
    series.observe(series.slot(...labels), value)
  }

  /** Clears the series of gauges, which are read again. */
  clear(...names: readonly InstrumentName[]): void {
    for (const name of names) this.of(name).clear()
  }

  read(): readonly Family[] {
    return [...this.#series.values()].map((series) => series.read())
  }
}
