import type { Static } from '@sinclair/typebox'
import type { Store } from '@sluice/core'
import { Day } from './day.ts'
import type { liveAnswer, trafficAnswer } from './schemas/fleet.ts'

type Live = Static<typeof liveAnswer>
type Traffic = Static<typeof trafficAnswer>
type Point = Traffic['points'][number]
type Rates = Traffic['policies'][number]

/** Time (ms) between two samples, time that the numbers cover, and number of points. */
const sampleMs = 5_000
const spanMs = 60_000
const maxPoints = 180
const maxPolicies = 10

/** Samples the fleet's counters as long as the history is referenced. */
export function sampled(take: () => Live, fleet: () => Store['fleet']): TrafficHistory {
  const history = new TrafficHistory()
  history.note(take())
  const held = new WeakRef(history)
  const timer = setInterval(() => {
    const kept = held.deref()
    if (!kept) return clearInterval(timer)
    const live = take()
    kept.note(live)
    if (live.scope === 'fleet') void kept.day.share(fleet(), live.at)
  }, sampleMs)
  timer.unref()
  return history
}

/** Computes rates from the last minutes' counters, so that a newly opened page has lines. */
export class TrafficHistory {
  readonly day: Day = new Day()
  /** The samples of a minute, oldest first. */
  #samples: readonly Live[] = []
  #points: readonly Point[] = []
  #outages: (readonly [from: number, to: number])[] = []
  /** Maximum number of processes visible within the span, or before an outage of the store. */
  #known = 0

  note(live: Live): void {
    this.day.note(live)
    // The clock was set back: rates and lines must not span this.
    if (live.at <= (this.#samples.at(-1)?.at ?? 0)) [this.#samples, this.#points] = [[], []]
    const before = this.#samples.at(-1)
    const seen = this.#samples.map(({ processes }) => processes)
    // An unavailable store shows no other process.
    this.#known = Math.max(live.processes, live.store.fallback ? this.#known : 0, ...seen)
    if (before) {
      const isOther = this.#samples.slice(-3).some((each) => each.processes !== live.processes)
      const isStale = live.store.fallback && live.processes > 1
      const isPart = isOther || isStale || live.processes < this.#known
      this.#points = [...this.#points, pointOf(before, live, isPart)].slice(-maxPoints)
    }
    const at = Math.round(live.at / 1_000)
    if (live.store.fallback) {
      const [from = at] = (before?.store.fallback && this.#outages.pop()) || []
      this.#outages.push([from, at])
    }
    const oldest = this.#points[0]?.[0] ?? at
    this.#outages = this.#outages.filter(([, to]) => to >= oldest)
    const isFresh = ({ at }: Live) => live.at - at <= spanMs
    this.#samples = [...this.#samples.filter(isFresh), live]
  }

  /** Returns the counts of the span, and points for all samples. */
  get traffic(): Omit<Traffic, 'fallback'> | undefined {
    const processes = this.#samples.at(-1)?.processes
    // Counts from a different number of processes cannot be compared, nor first reports after an
    // outage.
    const other = this.#samples.findLastIndex((each) => each.processes !== processes)
    const isEarly = other >= 0 && this.#samples.length < other + 5
    const base = this.#samples[isEarly || other < 0 ? 0 : other + 3]
    const live = isEarly ? this.#samples[other] : this.#samples.at(-1)
    if (!base || !live) return undefined
    const policies = live.policies.map((policy) => ratesOf(policy, base))
    return {
      ...{ at: live.at, spanMs: live.at - base.at },
      ...{ processes: live.processes, knownProcesses: this.#known },
      requests: grown(requestsOf, base, live),
      denied: grown(deniedOf, base, live),
      shadowDenied: grown(({ requests }) => requests.shadow_denied, base, live),
      nearMisses: sum(policies.map(({ nearMisses }) => nearMisses)),
      policies: policies
        .toSorted((one, other) => other.denied - one.denied || other.checks - one.checks)
        .slice(0, maxPolicies),
      policiesInAll: policies.length,
      ...quantilesOf(joined(live.latency.map((each) => bucketsOf(each, base)))),
      points: [...this.#points],
      outages: this.#outages.map((span) => [...span]),
    }
  }
}

function requestsOf({ requests }: Live): number {
  return sum(Object.values(requests))
}

function deniedOf({ requests }: Live): number {
  return requests.denied + requests.shed + requests.failed_closed
}

/** Counts of a process that is gone are lost. */
function grown(count: (live: Live) => number, before: Live, after: Live): number {
  return Math.max(0, count(after) - count(before))
}

function pointOf(before: Live, after: Live, isPart: boolean): Point {
  const seconds = Math.max(0.001, (after.at - before.at) / 1_000)
  const rate = (count: (live: Live) => number) =>
    isPart ? null : Math.round((grown(count, before, after) / seconds) * 10) / 10
  return [
    Math.round(after.at / 1_000),
    rate(requestsOf),
    rate(deniedOf),
    rate(({ policies }) => sum(policies.map(({ nearMisses }) => nearMisses))),
    rate(({ requests }) => requests.shadow_denied),
  ]
}

function ratesOf(policy: Live['policies'][number], base: Live): Rates {
  const before = base.policies.find((each) => each.policy === policy.policy)
  const of = (
    field: 'allowed' | 'denied' | 'shadowAllowed' | 'shadowDenied' | 'nearMisses' | 'fallback',
  ) => Math.max(0, policy[field] - (before?.[field] ?? 0))
  return {
    policy: policy.policy,
    checks: of('allowed') + of('denied') + of('shadowAllowed') + of('shadowDenied'),
    ...{ denied: of('denied'), shadowDenied: of('shadowDenied') },
    ...{ nearMisses: of('nearMisses'), fallback: of('fallback') },
  }
}

function bucketsOf({ answeredBy, buckets }: Live['latency'][number], base: Live) {
  const before = base.latency.find((each) => each.answeredBy === answeredBy)
  return buckets.map((bucket, index): Bucket => {
    return { ...bucket, count: Math.max(0, bucket.count - (before?.buckets[index]?.count ?? 0)) }
  })
}

/** Merges histograms with the same bucket bounds. */
function joined(histograms: readonly (readonly Bucket[])[]): readonly Bucket[] {
  const [first = []] = histograms
  return first.map((bucket, index) => ({
    ...bucket,
    count: sum(histograms.map((buckets) => buckets[index]?.count ?? 0)),
  }))
}

function quantilesOf(buckets: readonly Bucket[]): Pick<Traffic, 'p50Ms' | 'p99Ms'> {
  const [p50Ms, p99Ms] = [quantileMs(buckets, 0.5), quantileMs(buckets, 0.99)]
  return p50Ms === undefined || p99Ms === undefined ? {} : { p50Ms, p99Ms }
}

type Bucket = Live['latency'][number]['buckets'][number]

/** Estimates a quantile within its bucket, as Prometheus does. */
export function quantileMs(buckets: readonly Bucket[], share: number): number | undefined {
  const total = sum(buckets.map(({ count }) => count))
  if (total === 0) return undefined
  let below = 0
  let from = 0
  for (const { le, count } of buckets) {
    if (below + count >= total * share && count > 0) {
      if (le === undefined) return from * 1_000
      return (from + (le - from) * ((total * share - below) / count)) * 1_000
    }
    below += count
    from = le ?? from
  }
  return from * 1_000
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
