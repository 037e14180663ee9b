import type { Live } from '../../api/types.ts'

/** One answer about live counts, and when it came. */
interface Snapshot {
  readonly at: number
  readonly live: Live
}

/** Rates of one moment, each per second. */
export interface Point {
  /** In seconds since 1970. */
  readonly at: number
  readonly requests: number
  readonly denied: number
  readonly shadowDenied: number
  readonly nearMisses: number
}

/** Times of decisions, in ms; `undefined`: there were none. */
interface Quantiles {
  readonly p50Ms: number | undefined
  readonly p99Ms: number | undefined
}

/** Decisions by one answerer, in the span. */
export interface Answerer extends Quantiles {
  readonly name: string
  readonly count: number
}

export interface PolicyRates {
  readonly policy: string
  readonly checks: number
  readonly denied: number
  readonly shadowDenied: number
  readonly nearMisses: number
  readonly fallback: number
}

/** The counts of the newest span: a minute, or as long as the page knows of. */
export interface LiveWindow extends Quantiles {
  /** Number of processes that were counted. */
  readonly processes: number
  readonly spanMs: number
  /** True until a second answer is there: the counts are those since the start of the process. */
  readonly isSinceStart: boolean
  readonly requests: number
  readonly denied: number
  readonly shadowDenied: number
  readonly nearMisses: number
  readonly failed: number
  readonly policies: readonly PolicyRates[]
  readonly answerers: readonly Answerer[]
  readonly points: readonly Point[]
}

/** Five minutes of points. */
const maxPoints = 150
const spanMs = 60_000

/**
 * Makes rates of counters. Answers of different processes are never compared: behind a balancer
 * each may come from another one, and each counts since its own start.
 */
export class LiveHistory {
  readonly #byInstance = new Map<string, Snapshot[]>()
  #points: readonly Point[] = []
  #latest: Snapshot | undefined

  /** Takes an answer; `at` tells when it came, in ms since 1970. */
  note(live: Live, at: number): void {
    if (this.#latest?.at === at) return
    const known = this.#byInstance.get(live.instance) ?? []
    const last = known.at(-1)
    // A process that began again counts from zero.
    const kept = last && last.live.since === live.since ? known : []
    const snapshot = { at, live }
    const previous = kept.at(-1)
    if (previous) this.#points = [...this.#points, pointOf(previous, snapshot)].slice(-maxPoints)
    const fresh = kept.filter((each, index) => isInSpan(each, at) || index === kept.length - 1)
    this.#byInstance.set(live.instance, [...fresh, snapshot])
    this.#latest = snapshot
  }

  /** `undefined`: nothing is known yet. */
  get window(): LiveWindow | undefined {
    const latest = this.#latest
    if (!latest) return undefined
    const [first] = this.#byInstance.get(latest.live.instance) ?? []
    const base = first === latest ? undefined : first?.live
    const { live, at } = latest
    const of = (field: keyof Live['requests']) =>
      live.requests[field] - (base?.requests[field] ?? 0)
    const policies = live.policies.map((policy) => ratesOf(policy, base))
    const timed = live.latency.map((each) => bucketsOf(each, base))
    return {
      processes: live.processes,
      spanMs: base && first ? at - first.at : Math.max(1, live.at - live.since),
      isSinceStart: base === undefined,
      requests: requestsOf(live) - (base ? requestsOf(base) : 0),
      denied: of('denied') + of('shed') + of('failed_closed'),
      shadowDenied: of('shadow_denied'),
      nearMisses: sum(policies.map(({ nearMisses }) => nearMisses)),
      failed: of('failed_open') + of('failed_closed'),
      policies,
      answerers: timed
        .map(({ name, buckets }) => ({ name, count: countOf(buckets), ...quantilesOf(buckets) }))
        .filter(({ count }) => count > 0)
        .sort((one, other) => other.count - one.count),
      ...quantilesOf(joined(timed.map(({ buckets }) => buckets))),
      points: this.#points,
    }
  }
}

/** Number of requests, whatever became of them. */
function requestsOf({ requests }: Live): number {
  return sum(Object.values(requests))
}

function isInSpan({ at }: Snapshot, now: number): boolean {
  return now - at <= spanMs
}

function pointOf(before: Snapshot, after: Snapshot): Point {
  const seconds = Math.max(0.001, (after.at - before.at) / 1_000)
  const rate = (count: (live: Live) => number) =>
    Math.max(0, count(after.live) - count(before.live)) / seconds
  return {
    at: after.at / 1_000,
    requests: rate(requestsOf),
    denied: rate(({ requests }) => requests.denied + requests.shed + requests.failed_closed),
    shadowDenied: rate(({ requests }) => requests.shadow_denied),
    nearMisses: rate(({ policies }) => sum(policies.map(({ nearMisses }) => nearMisses))),
  }
}

function ratesOf(policy: Live['policies'][number], base: Live | undefined): PolicyRates {
  const before = base?.policies.find((each) => each.policy === policy.policy)
  const of = (
    field: 'allowed' | 'denied' | 'shadowAllowed' | 'shadowDenied' | 'nearMisses' | 'fallback',
  ) => policy[field] - (before?.[field] ?? 0)
  return {
    policy: policy.policy,
    checks: of('allowed') + of('denied') + of('shadowAllowed') + of('shadowDenied'),
    denied: of('denied'),
    shadowDenied: of('shadowDenied'),
    nearMisses: of('nearMisses'),
    fallback: of('fallback'),
  }
}

/** Returns the buckets of one answerer, in the span. */
function bucketsOf({ answeredBy, buckets }: Live['latency'][number], base: Live | undefined) {
  const before = base?.latency.find((each) => each.answeredBy === answeredBy)
  const grown = buckets.map(({ le, count }, index): Bucket => {
    return { le, count: count - (before?.buckets[index]?.count ?? 0) }
  })
  return { name: answeredBy, buckets: grown }
}

/** Joins histograms, whose buckets have the same bounds. */
function joined(histograms: readonly (readonly Bucket[])[]): readonly Bucket[] {
  const [first = []] = histograms
  return first.map(({ le }, index) => ({
    le,
    count: sum(histograms.map((buckets) => buckets[index]?.count ?? 0)),
  }))
}

function quantilesOf(buckets: readonly Bucket[]): Quantiles {
  return { p50Ms: quantileMs(buckets, 0.5), p99Ms: quantileMs(buckets, 0.99) }
}

interface Bucket {
  readonly le?: number | undefined
  readonly count: number
}

/** Estimates a quantile within its bucket, as Prometheus does. */
export function quantileMs(buckets: readonly Bucket[], share: number): number | undefined {
  const total = countOf(buckets)
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

function countOf(buckets: readonly Bucket[]): number {
  return sum(buckets.map(({ count }) => count))
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
