import { useMemo } from 'preact/hooks'
import type { Arrival, Run } from './simulate.ts'

const columns = 100

/** The part of time that charts show. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

interface ChartProps {
  readonly label: string
  readonly traffic: readonly Arrival[]
  readonly span: Span
  readonly run: Run | undefined
  /** Moment of the window that is marked. */
  readonly cursorMs: number
  /** Fixed windows, whose ends are marked. */
  readonly hasEdges: boolean
}

/** A histogram of requests: those that passed, and on top of them those that were refused. */
export function LaneChart({ label, traffic, span, run, cursorMs, hasEdges }: ChartProps) {
  const { passed, refused, edges } = useMemo(() => {
    const counts = Array.from({ length: columns }, () => ({ passed: 0, refused: 0 }))
    const edges = new Set<number>()
    for (const [index, { atMs }] of traffic.entries()) {
      const column = counts[Math.min(columns - 1, Math.floor(placeOf(span, atMs)))]
      const decision = run?.decisions[index]
      if (column) column[decision?.allowed === false ? 'refused' : 'passed'] += 1
      const endMs = atMs + (decision?.outcomes[0]?.resetMs ?? 0)
      if (hasEdges && endMs < span.toMs && edges.size < columns) edges.add(endMs)
    }
    const highest = Math.max(4, ...counts.map(({ passed, refused }) => passed + refused))
    const bars = (bottom: 'passed' | undefined, part: 'passed' | 'refused') =>
      counts
        .flatMap((column, x) => {
          const low = bottom ? column[bottom] : 0
          const y = (count: number) => 100 - (count / highest) * 92
          return column[part] === 0
            ? []
            : [`M${x} ${y(low)}V${y(low + column[part])}H${x + 0.85}V${y(low)}Z`]
        })
        .join('')
    return { passed: bars(undefined, 'passed'), refused: bars('passed', 'refused'), edges }
  }, [traffic, span.fromMs, span.toMs, run, hasEdges])
  const [cursor, windowMs] = [placeOf(span, cursorMs), run?.windowMs ?? 0]
  const start = Math.max(0, placeOf(span, cursorMs - windowMs))
  return (
    <svg
      {...{ viewBox: `0 0 ${columns} 100`, preserveAspectRatio: 'none' }}
      class="chart"
      role="img"
      aria-label={label}
    >
      <rect class="window" x={start} y="0" width={Math.max(0, cursor - start)} height="100" />
      {[...edges].map((edgeMs) => (
        <path key={edgeMs} class="edge" d={`M${placeOf(span, edgeMs)} 0V100`} />
      ))}
      <path class="passed" d={passed} />
      <path class="refused" d={refused} />
      <path class="cursor" d={`M${cursor} 0V100`} />
    </svg>
  )
}

function placeOf({ fromMs, toMs }: Span, atMs: number): number {
  return ((atMs - fromMs) / Math.max(1, toMs - fromMs)) * columns
}
