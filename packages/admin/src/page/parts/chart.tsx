import { brief, clockTime } from '../words/format.ts'

/** One line of a chart; `tone` is a CSS colour name. */
export interface Line {
  readonly label: string
  readonly tone: 'accent' | 'deny' | 'near' | 'shadow'
  /** `null` if unknown: the line has a gap. */
  readonly values: readonly (number | null)[]
}

/** An event, and a link to more. */
interface Mark {
  /** In seconds since 1970. */
  readonly at: number
  readonly words: string
  readonly href: string
}

interface ChartProps {
  /** Text alternative of the chart. */
  readonly label: string
  /** In seconds since 1970. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  readonly marks: readonly Mark[]
  /** Shaded spans, in seconds since 1970. */
  readonly outages: readonly (readonly number[])[]
}

/** Marks closer than this, in percent of the width, share a link. */
const markStep = 10
const timeSteps = [15, 30, 60, 120, 300]

/** Lines over time, in a stretched box of 100 by 100. */
export function Chart({ label, times, lines, marks, outages }: ChartProps) {
  const [first = 0] = times
  const span = Math.max(1, (times.at(-1) ?? 0) - first)
  const most = roundUp(Math.max(0, ...lines.flatMap(({ values }) => values.map(Number))))
  const x = (at: number) => Math.min(100, Math.max(0, ((at - first) / span) * 100))
  const y = (value: number) => 100 - (value / most) * 100
  const path = (values: Line['values']) =>
    values.map((value, index) => {
      const verb = typeof values[index - 1] === 'number' ? 'L' : 'M'
      return value === null
        ? ''
        : `${verb}${x(times[index] ?? first).toFixed(2)} ${y(value).toFixed(2)}`
    })
  const step = timeSteps.find((each) => span / each <= 6) ?? 300
  const ticks = times.filter((at, index) => {
    return Math.floor(at / step) > Math.floor((times[index - 1] ?? at) / step)
  })
  const placeOf = ({ at }: Mark): number => Math.min(9, Math.floor(x(at) / markStep))
  const places = [...new Set(marks.map(placeOf))]
  return (
    <div class="chart">
      <svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label={label}>
        {outages.map(([from = 0, to = 0]) => (
          <rect key={from} class="near" x={x(from)} width={x(to) - x(from)} height="100" />
        ))}
        <path class="none" d="M0 0H100M0 50H100M0 100H100" />
        {lines.map(({ label, tone, values }) => (
          <path key={label} class={tone} d={path(values).join('')} />
        ))}
        {marks.map(({ at, words }) => (
          <path key={`${at} ${words}`} class="mark" d={`M${x(at)} 0V100`} />
        ))}
      </svg>
      {[0, 0.5, 1].map((part) => (
        <span key={part} class="tick y" style={{ top: `${100 - part * 100}%` }}>
          {brief(part * most)}
        </span>
      ))}
      {ticks.map((at) => (
        <span key={at} class="tick x" style={{ left: `${x(at)}%` }}>
          {clockTime(at * 1_000)}
        </span>
      ))}
      {places.map((place) => {
        const group = marks.filter((mark) => placeOf(mark) === place)
        const words = group.map((mark) => mark.words).join('; ')
        const label = `${group.length} changed: ${words}`
        const style = { left: `${(place + 0.5) * markStep}%` }
        return (
          <a
            key={place}
            class="flag"
            href={group[0]?.href ?? ''}
            title={words}
            aria-label={label}
            style={style}
          >
            {group.length}
          </a>
        )
      })}
    </div>
  )
}

/** Rounds up to 1, 2 or 5 times a power of ten. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1))
  return power * ([1, 2, 5].find((each) => each * power >= value) ?? 10)
}
