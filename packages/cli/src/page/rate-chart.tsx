import { countText } from '../report/formats.ts'

/** Rates, ascending, each with the number of clients that reach it. */
export type Distribution = readonly (readonly [rate: number, clients: number])[]

interface ChartProps {
  /** Text alternative of the chart. */
  readonly label: string
  readonly distribution: Distribution
  readonly limit: number
  readonly span: string
}

export function RateChart({ label, distribution, limit, span }: ChartProps) {
  const clients = distribution.reduce((sum, [, each]) => sum + each, 0)
  const maxRate = distribution.at(-1)?.[0] ?? 0
  if (maxRate === 0) return null
  const x = (rate: number) => percent(rate, maxRate)
  const y = (count: number) => 100 - percent(count, clients)
  /** The area under the clients above a rate. */
  const area = (from: number) => {
    let left = clients
    const parts = distribution.map(([rate, each]) => {
      const part = rate > from ? `V${y(left)}H${x(rate)}` : ''
      left -= each
      return part
    })
    return `M${x(from)} 100${parts.join('')}V100`
  }
  return (
    <>
      <div class="chart">
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label={label}>
          {ticks(clients).map((count) => (
            <path key={count} class="none" d={`M0 ${y(count)}H100`} />
          ))}
          <path class="accent" d={area(0)} />
          <path class="deny" d={area(limit)} />
          <path class="deny" d={`M${Math.min(100, x(limit))} 0V100`} />
        </svg>
        {ticks(clients).map((count) => (
          <span key={count} class="tick y" style={{ top: `${y(count)}%` }}>
            {countText(count)}
          </span>
        ))}
        {ticks(maxRate).map((rate) => (
          <span key={rate} class="tick x" style={{ left: `${x(rate)}%` }}>
            {countText(rate)}
          </span>
        ))}
      </div>
      <p class="muted small">{`Up: clients. Across: requests in ${span}.`}</p>
    </>
  )
}

/** Returns the position of a number on an axis, in percent. */
function percent(value: number, max: number): number {
  const [low, high] = [Math.log(0.8), Math.log(Math.max(2, max * 1.3))]
  const place = (Math.log(Math.max(0.8, value)) - low) / (high - low)
  return Number((place * 100).toFixed(2))
}

/** Returns the powers of ten up to a number, and steps in between if there is room. */
function ticks(max: number): readonly number[] {
  const steps = max < 200 ? [1, 2, 5] : [1]
  const powers = Array.from({ length: 16 }, (_, power) => 10 ** power)
  return powers.flatMap((power) => steps.map((step) => step * power)).filter((tick) => tick <= max)
}
