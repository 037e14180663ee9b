import type { RatedClients } from '../rates/distribution.ts'
import { rateWindowsMs } from '../rates/rolling-rates.ts'
import type { BusyClient, LogReport } from '../report/simulation-report.ts'

/** The result of `sluice suggest --json`. Times and spans are in ms. */
export interface Suggestion {
  readonly kind: 'sluice-suggestion'
  readonly version: 1
  readonly log: LogReport
  /** The name of the key that identifies clients. */
  readonly key: string
  readonly identities: number
  /** The share of identities that the limits may affect, from 0 to 1. */
  readonly maxTouched: number
  /** The rates per window that this share of identities does not exceed. */
  readonly quantiles: readonly WindowQuantiles[]
  readonly pair: LimitPair
  /** Pairs for other shares. */
  readonly alternatives: readonly LimitPair[]
  /** Identities far above all others: left out of the figures, and candidates for blocking. */
  readonly outliers: readonly BusyClient[]
  /** Clients whose credentials a route repeatedly refuses; they are outliers too. */
  readonly guesses: readonly Guesser[]
  /** The number of all outliers; at most 50 are listed. */
  readonly outlierCount: number
  readonly warnings: readonly string[]
}

/** A client that gets 401 or 403 on a route. */
export interface Guesser {
  readonly client: string
  readonly route: string
  readonly refused: number
}

interface WindowQuantiles {
  readonly windowMs: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

/** A limit for bursts and one for sustained traffic. */
export interface LimitPair {
  readonly maxTouched: number
  readonly burst: SuggestedLimit
  readonly sustained: SuggestedLimit
  /** Identities that one of the two would have refused, besides the outliers. */
  readonly touched: number
}

export interface SuggestedLimit {
  readonly limit: number
  readonly windowMs: number
}

/** A rate this many times that of nearly all others is abuse or a mistake. */
const outlierFactor = 10
/** Requests per minute. A lower rate is normal, whatever the others do. */
const minOutlierRate = 60
/** A larger share of identities is a group of users, not an exception. */
const maxOutlierShare = 0.01
const maxOutliers = 50
const shares = [0, 0.001, 0.01, 0.05]

interface PairOptions {
  readonly maxTouched: number
  /** True if the log has only whole seconds, which is too coarse for short windows. */
  readonly isWholeSeconds: boolean
  /** Numbers of clients that are outliers at any rate. */
  readonly guessers: readonly number[]
}

export function pairsFor(
  clients: RatedClients,
  { maxTouched, isWholeSeconds, guessers }: PairOptions,
): Pick<Suggestion, 'quantiles' | 'pair' | 'alternatives' | 'outliers' | 'outlierCount'> {
  const sustained = rateWindowsMs.indexOf(60_000)
  const windows = { burst: rateWindowsMs.indexOf(isWholeSeconds ? 10_000 : 1_000), sustained }
  const outliers = new Set([...guessers, ...outliersOf(clients.ratesIn(sustained))])
  const usual = rateWindowsMs.map((_, window) => without(clients.ratesIn(window), outliers))
  const sorted = usual.map((rates) => rates.toSorted())
  const pairOf = (share: number): LimitPair => limitPair(usual, sorted, windows, share)
  return {
    quantiles: rateWindowsMs.map((windowMs, window) => {
      const rates = sorted[window] ?? new Uint32Array()
      return {
        windowMs,
        p50: quantile(rates, 0.5),
        p90: quantile(rates, 0.9),
        p99: quantile(rates, 0.99),
        p999: quantile(rates, 0.999),
        max: rates.at(-1) ?? 0,
      }
    }),
    pair: pairOf(maxTouched),
    alternatives: shares.filter((share) => share !== maxTouched).map(pairOf),
    outliers: [...clients.named(outliers)]
      .sort((one, other) => (other.rates[sustained] ?? 0) - (one.rates[sustained] ?? 0))
      .slice(0, maxOutliers),
    outlierCount: outliers.size,
  }
}

/** Returns the numbers of clients with a rate far above nearly all others. */
function outliersOf(rates: Uint32Array): ReadonlySet<number> {
  const sorted = rates.toSorted()
  const most = Math.max(1, Math.floor(rates.length * maxOutlierShare))
  const usual = sorted[Math.max(0, sorted.length - 1 - most)] ?? 0
  const bound = Math.max(usual * outlierFactor, minOutlierRate)
  const outliers = new Set<number>()
  for (let client = 0; client < rates.length; client += 1) {
    if ((rates[client] ?? 0) > bound) outliers.add(client)
  }
  return outliers
}

function without(rates: Uint32Array, left: ReadonlySet<number>): Uint32Array {
  return left.size === 0 ? rates : rates.filter((_, client) => !left.has(client))
}

/** Half of the share for each limit, so that both together do not exceed the share. */
function limitPair(
  rates: readonly Uint32Array[],
  sorted: readonly Uint32Array[],
  windows: Readonly<Record<'burst' | 'sustained', number>>,
  maxTouched: number,
): LimitPair {
  const limitOf = (window: number): number =>
    roundedUp(quantile(sorted[window] ?? new Uint32Array(), 1 - maxTouched / 2))
  const burst = limitOf(windows.burst)
  const sustained = Math.max(burst, limitOf(windows.sustained))
  const sustainedRates = rates[windows.sustained] ?? new Uint32Array()
  let touched = 0
  for (const [client, rate] of rates[windows.burst]?.entries() ?? []) {
    if (rate > burst || (sustainedRates[client] ?? 0) > sustained) touched += 1
  }
  return {
    maxTouched,
    burst: { limit: burst, windowMs: rateWindowsMs[windows.burst] ?? 0 },
    sustained: { limit: sustained, windowMs: rateWindowsMs[windows.sustained] ?? 0 },
    touched,
  }
}

/** Returns the lowest rate that a share of the rates does not exceed. */
function quantile(sorted: Uint32Array, share: number): number {
  const place = Math.ceil(share * sorted.length) - 1
  return sorted[Math.min(sorted.length - 1, Math.max(0, place))] ?? 0
}

/** Rounds a limit up to two digits: 1,234 becomes 1,300. */
function roundedUp(limit: number): number {
  if (limit <= 20) return Math.max(1, limit)
  const step = 10 ** Math.floor(Math.log10(limit) - 1)
  return Math.ceil(limit / (limit < 100 ? 5 : step)) * (limit < 100 ? 5 : step)
}
