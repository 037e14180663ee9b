import { type FleetSubject, type Heard, intervalMs, isNumber, list } from './fleet-exchange.ts'
import { type InstrumentName, instruments } from './instruments.ts'
import { type Family, growing, other, type Sample, sum } from './series.ts'

/** Counters and histograms that a fleet adds up. */
const addedNames = [
  'sluice_requests_total',
  'sluice_checks_total',
  'sluice_used_ratio',
  'sluice_decision_seconds',
] as const satisfies readonly InstrumentName[]

/** Characters of the counts of one process, and of all processes of a fleet together. */
const maxReport = 8_192
const maxReports = 131_072
/** Routes or policies that a report names at most. */
const maxNamed = 128
/** Processes that are counted apart. */
const maxMembers = 1_000
/** Time (ms) in which new counts are shown bit by bit: the next report has come by then. */
const playMs = intervalMs * 1.25

/** The value of a series, and its buckets, by the name and the labels of the series. */
type Counts = ReadonlyMap<string, readonly number[]>

/** The counts of one other process since this process listens. */
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
 * Adds up what the processes of a fleet count. A process that leaves takes nothing with it, so that
 * the sum only grows; it begins with this process.
 */
export class FleetCounts implements FleetSubject {
  readonly #read: () => readonly Family[]
  readonly #since = Date.now()
  readonly #members = new Map<string, Member>()
  /** The counts of processes that are not counted apart any more. */
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
      // The order is that in which they were heard of.
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

  /** The metrics of this process, with the counts of the whole fleet in place of its own. */
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
      // A count that is almost there is there: the rest may never come.
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

/** Writes the series of a metric: those of the busiest routes or policies, all others as one. */
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

/** Leaves out what it cannot read: a process of another version may have written it. */
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

/** The counts of a process at a time between two of its reports, with fractions. */
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

/** Adds counts, without those of a base. */
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
