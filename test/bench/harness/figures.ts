/** What was measured, by name; the unit stands in the name. */
export type Figures = Readonly<Record<string, number>>

/** The value below which this share of the values lies, between neighbours by proportion; NaN for none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort()
  const place = (sorted.length - 1) * share
  const low = sorted[Math.floor(place)] ?? Number.NaN
  const high = sorted[Math.ceil(place)] ?? Number.NaN
  return low + (high - low) * (place - Math.floor(place))
}

export function medians(rounds: readonly Figures[]): Figures {
  const names = new Set(rounds.flatMap((round) => Object.keys(round)))
  return Object.fromEntries(
    [...names].map((name) => {
      const values = rounds.flatMap((round) => round[name] ?? [])
      return [name, quantile(values, 0.5)]
    }),
  )
}

/**
 * For each figure that both have, the median of ours / theirs round by round: what disturbs the machine for a while disturbs
 * both sides of a ratio.
 */
export function medianRatios(ours: readonly Figures[], theirs: readonly Figures[]): Figures {
  const ratios = ours.map((round, index) => {
    const other = theirs[index] ?? {}
    const pairs = Object.entries(round).flatMap(([name, value]) => {
      const ratio = value / (other[name] ?? Number.NaN)
      return Number.isFinite(ratio) ? [[name, ratio] as const] : []
    })
    return Object.fromEntries(pairs)
  })
  return medians(ratios)
}

/** Fails a round whose subject did not do what its case is about, and would be compared with others that did. */
export function checkTraffic(traffic: 'allowed' | 'denied', allowedShare: number): void {
  const fits = traffic === 'denied' ? allowedShare < 0.05 : allowedShare > 0.9
  if (fits) return
  const percent = (allowedShare * 100).toFixed(1)
  throw new Error(`${percent} % of its checks were allowed, where the case is '${traffic}'`)
}
