import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import { brief, clockTime } from '../words/format.ts'

/** One line of a chart; `tone` is the name of a colour in CSS. */
export interface Line {
  readonly label: string
  readonly tone: 'accent' | 'deny' | 'near' | 'shadow'
  /** `null`: nobody knows, and the line has a gap. */
  readonly values: readonly (number | null)[]
}

interface ChartProps {
  /** The contents in words, for those who do not see the chart. */
  readonly label: string
  /** In seconds since 1970. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  readonly height?: number
}

/** Lines over time. */
export function Chart({ label, times, lines, height = 200 }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | undefined>(undefined)
  const data: UPlot.AlignedData = [[...times], ...lines.map(({ values }) => [...values])]
  const latest = useRef(data)
  latest.current = data
  useEffect(() => {
    const element = box.current
    if (!element) return
    const draw = () => {
      plot.current?.destroy()
      const options = optionsOf(element, lines, height)
      plot.current = new UPlot(options, latest.current, element)
    }
    const resize = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height })
    })
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    draw()
    resize.observe(element)
    scheme.addEventListener('change', draw)
    window.addEventListener('sluice-theme', draw)
    return () => {
      resize.disconnect()
      scheme.removeEventListener('change', draw)
      window.removeEventListener('sluice-theme', draw)
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [lines.length, height])
  useEffect(() => plot.current?.setData(data), [times, lines])
  return <div ref={box} class="chart" role="img" aria-label={label} />
}

function optionsOf(element: HTMLElement, lines: readonly Line[], height: number): UPlot.Options {
  const colour = colours(element)
  const axis = {
    stroke: colour('muted'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: colour('line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    padding: [8, 8, 0, 0],
    scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        gap: 8,
        space: 80,
        incrs: [5, 10, 15, 30, 60, 120, 300],
        values: (_, ticks) => ticks.map((tick) => clockTime(tick * 1_000)),
      },
      { ...axis, size: 44, space: 34, values: (_, ticks) => ticks.map(brief) },
    ],
    series: [
      {},
      ...lines.map(({ label, tone }, index) => ({
        label,
        stroke: colour(tone),
        width: 1.75,
        points: { show: false },
        ...(index === 0 && { fill: colour(tone, 0.12) }),
      })),
    ],
  }
}

/** Reads colours as the theme has them: a canvas knows no variables of CSS. */
function colours(element: HTMLElement): (tone: string, alpha?: number) => string {
  const probe = document.createElement('span')
  element.append(probe)
  const style = getComputedStyle(probe)
  // The plot asks for all colours before the probe is taken away.
  queueMicrotask(() => probe.remove())
  return (tone, alpha) => {
    probe.style.color = `var(--${tone})`
    const { color } = style
    return alpha === undefined ? color : color.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`)
  }
}
