import { type FleetSubject, type Heard, intervalMs, isNumber, list } from './fleet-exchange.ts'
import { type InstrumentName, instruments } from './instruments.ts'
import { type Family, growing, other, type Sample, sum } from './series.ts'

/** Counters and histograms that are summed over a fleet. */
const addedNames = [
  'sluice_requests_total',
  'sluice_checks_total',
  'sluice_used_ratio',
  'sluice_decision_seconds',
] as const satisfies readonly InstrumentName[]

/** Maximum characters for the counts of one process, and of all processes of a fleet together. */
const maxReport = 8_192
const maxReports = 131_072
/** Maximum number of routes or policies in a report. */
const maxNamed = 128
/** Maximum number of processes counted separately. */
const maxMembers = 1_000
/** Time (ms) over which new counts are shown gradually, until the next report arrives. */
const playMs = intervalMs * 1.25

/** The value of a series, and its buckets, by name and labels. */
type Counts = ReadonlyMap<string, readonly number[]>

/** The counts of another process since this process started listening. */
interface Member {
  /** Its last report. */
  readonly text: string
  /** Its counts before this process listened. */
  readonly base: Counts
  readonly from: Counts
  readonly to: Counts
  readonly heardAt: number
}

/**
 * Sums the counts of a fleet's processes. Counts of processes that leave are kept, so that the sum
 * only grows; it starts with this process.
 */
export class FleetCounts implements FleetSubject {
  readonly #read: () => readonly Family[]
  readonly #since = Date.now()
  readonly #members = new Map<string, Member>()
  /** The counts of processes that are no longer counted separately. */
  #gone: Counts = new Map()

  /** @param read the metrics of this process */
  constructor(read: () => readonly Family[]) {
    this.#read = read
  }

  report(instances: number): unknown {
    const families = this.#read()
    const room = Math.min(maxReport, maxReports / instances)
    for (let named = maxNamed; ; named = Math.floor(named / 2)) {
      const rows = addedNames.map((name) => rowsOf(samplesOf(families, name), name, named))
      if (named === 0 || JSON.stringify(rows).length <= room) return [this.#since, ...rows]
    }
  }

  hear(heard: readonly Heard[]): void {
    const nowMs = performance.now()
    for (const { member, part } of heard) {
      const [since, ...families] = list(part)
      if (!isNumber(since)) continue
      const known = this.#members.get(member)
      const text = JSON.stringify(families)
      // In the order in which they were first seen.
      this.#members.delete(member)
      if (known?.text === text) {
        this.#members.set(member, known)
        continue
      }
      const counts = decoded(families)
      const base = known?.base ?? (since < this.#since ? counts : new Map())
      const from = known ? shown(known, nowMs) : new Map()
      this.#members.set(member, { text, base, from, to: added([counts], base), heardAt: nowMs })
    }
    for (const [member, { to }] of this.#members) {
      if (this.#members.size <= maxMembers) break
      this.#gone = added([this.#gone, to])
      this.#members.delete(member)
    }
  }

  /** Returns the metrics of this process, with the counts of the whole fleet. */
  read(): readonly Family[] {
    const nowMs = performance.now()
    const others = [...this.#members.values()].map((member) => shown(member, nowMs))
    const families = this.#read()
    if (others.length === 0) return families
    const all = added([
      ...addedNames.map((name) => countsOf(families, name)),
      this.#gone,
      ...others,
    ])
    const byName = new Map<string, Sample[]>(addedNames.map((name) => [name, []]))
    for (const [key, [value = 0, ...buckets]] of all) {
      const [name = '', ...labels] = list(JSON.parse(key)).map(String)
      // A count that is almost complete counts as complete: the rest may never arrive.
      const counts = { value: Math.ceil(value) }
      const histogram = { value, buckets: buckets.map(Math.ceil) }
      byName.get(name)?.push({ labels, ...(buckets.length > 0 ? histogram : counts) })
    }
    return families.map((family) => ({
      ...family,
      samples: byName.get(family.name) ?? family.samples,
    }))
  }
}

function samplesOf(families: readonly Family[], name: InstrumentName): readonly Sample[] {
  return families.find((family) => family.name === name)?.samples ?? []
}

function countsOf(families: readonly Family[], name: InstrumentName): Counts {
  return new Map(
    samplesOf(families, name).map(({ labels, value, buckets = [] }) => {
      return [JSON.stringify([name, ...labels]), [value, ...buckets]]
    }),
  )
}

/** Encodes the series of a metric: the busiest routes or policies, and all others as one. */
function rowsOf(samples: readonly Sample[], name: InstrumentName, named: number): unknown {
  const grows = growing.has(instruments[name].labels[0] ?? '')
  const sums = new Map<string, number>()
  for (const { labels, value, buckets } of samples) {
    const [first = ''] = labels
    sums.set(first, (sums.get(first) ?? 0) + (buckets ? sum(buckets) : value))
  }
  const busiest = [...sums].sort(([, one], [, another]) => another - one).slice(0, named)
  const kept = new Set(busiest.map(([first]) => first))
  const rows = new Map<string, readonly [labels: readonly string[], counts: readonly number[]]>()
  for (const { labels: own, value, buckets = [] } of samples) {
    const [first = '', ...rest] = own
    const labels = [grows && !kept.has(first) ? other : first, ...rest]
    const key = labels.join('\u0000')
    rows.set(key, [labels, plus(rows.get(key)?.[1] ?? [], [value, ...buckets])])
  }
  return [...rows.values()]
}

/** Skips unreadable parts: a process of another version may have written them. */
function decoded(families: readonly unknown[]): Counts {
  const counts = new Map<string, readonly number[]>()
  for (const [index, name] of addedNames.entries()) {
    const { labels: names, buckets } = instruments[name]
    const width = 1 + (buckets ? buckets.length + 1 : 0)
    for (const row of list(families[index])) {
      const [labels, values] = list(row).map(list)
      const numbers = values?.filter(isNumber) ?? []
      if (labels?.length !== names.length || numbers.length !== width) continue
      counts.set(JSON.stringify([name, ...labels.map(String)]), numbers)
    }
  }
  return counts
}

/** Interpolates the counts of a process between two reports, with fractions. */
function shown({ from, to, heardAt }: Member, nowMs: number): Counts {
  const share = Math.min(1, (nowMs - heardAt) / playMs)
  if (share === 1) return to
  const result = new Map<string, readonly number[]>()
  for (const [key, counts] of to) {
    const before = from.get(key) ?? []
    const grown = counts.map((count, index) => (count - (before[index] ?? 0)) * share)
    result.set(key, plus(before, grown))
  }
  return result
}

/** Adds counts, minus those of a base. */
function added(all: readonly Counts[], base?: Counts): Counts {
  const result = new Map<string, readonly number[]>()
  for (const counts of all) {
    for (const [key, values] of counts) result.set(key, plus(result.get(key) ?? [], values))
  }
  for (const [key, values] of base ?? []) {
    const found = result.get(key)
    const rest = found?.map((count, index) => Math.max(0, count - (values[index] ?? 0)))
    if (rest) result.set(key, rest)
  }
  return result
}

function plus(one: readonly number[], another: readonly number[]): readonly number[] {
  return another.map((count, index) => count + (one[index] ?? 0))
}
