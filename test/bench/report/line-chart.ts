export interface Line {
  readonly name: string
  readonly points: readonly (readonly [x: number, y: number])[]
}

export interface ChartOptions {
  readonly title: string
  readonly xLabel: string
  readonly yLabel: string
  readonly lines: readonly Line[]
}

const [width, height] = [760, 440]
const plot = { left: 76, right: 730, top: 92, bottom: 378 }
const colours = ['#0b63c5', '#c2410c', '#4d7c0f', '#7e22ce', '#57606a']
/** A circle, a square and a diamond: lines are told apart by people who see fewer colours, too. */
const markers = [
  'M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0',
  'M-3.75-3.75h7.5v7.5h-7.5z',
  'M0-5 5 0 0 5-5 0z',
]
const grey = '#57606a'
const faint = '#e3e6ea'

export function lineChart({ title, xLabel, yLabel, lines }: ChartOptions): string {
  const points = lines.flatMap((line) => line.points)
  const x = logScale(
    points.map(([value]) => value),
    { from: plot.left, to: plot.right, padding: 1 },
  )
  const y = logScale(
    points.map(([, value]) => value),
    { from: plot.bottom, to: plot.top, padding: 1.25 },
  )
  const middle = (plot.left + plot.right) / 2
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(title)}" font-family="system-ui, sans-serif" font-size="13" fill="#1f2328">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="${plot.left}" y="32" font-size="17" font-weight="600">${escapeXml(title)}</text>`,
    ...legend(lines),
    ...y.ticks.map((tick) => {
      const at = y.place(tick)
      return `<line x1="${plot.left}" x2="${plot.right}" y1="${at}" y2="${at}" stroke="${faint}"/><text x="${plot.left - 10}" y="${at + 4}" text-anchor="end" fill="${grey}">${tickLabel(tick)}</text>`
    }),
    ...x.ticks.map((tick) => {
      const at = x.place(tick)
      return `<line x1="${at}" x2="${at}" y1="${plot.top}" y2="${plot.bottom}" stroke="${faint}"/><text x="${at}" y="${plot.bottom + 22}" text-anchor="middle" fill="${grey}">${tickLabel(tick)}</text>`
    }),
    `<text x="${middle}" y="${height - 14}" text-anchor="middle" fill="${grey}">${escapeXml(xLabel)}</text>`,
    `<text transform="translate(20 ${(plot.top + plot.bottom) / 2}) rotate(-90)" text-anchor="middle" fill="${grey}">${escapeXml(yLabel)}</text>`,
    ...lines.map(({ points }, index) => {
      const placed = points.map(([px, py]) => [x.place(px), y.place(py)] as const)
      const path = `<polyline points="${placed.join(' ')}" fill="none" stroke-width="2.25" stroke-linejoin="round"/>`
      return coloured(index, [path, ...placed.map(([px, py]) => marker(index, px, py))].join('\n'))
    }),
    '</svg>',
  ].join('\n')}\n`
}

/** The fewer decades, the more ticks in each. */
function logScale(
  values: readonly number[],
  { from, to, padding }: { from: number; to: number; padding: number },
) {
  const low = Math.log10(Math.min(...values) / padding)
  const high = Math.log10(Math.max(...values) * padding)
  const span = high - low
  const steps = span > 2.5 ? [1] : span > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 5, 7]
  const decades = Math.ceil(high) - Math.floor(low) + 1
  const ticks = Array.from({ length: decades }, (_, index) => 10 ** (Math.floor(low) + index))
  const inside = (tick: number): boolean =>
    Math.log10(tick) >= low - 1e-9 && Math.log10(tick) <= high + 1e-9
  return {
    ticks: ticks.flatMap((decade) => steps.map((step) => step * decade)).filter(inside),
    place: (value: number) => round(from + ((Math.log10(value) - low) / (span || 1)) * (to - from)),
  }
}

/** Goes on in a second row where the first is full. */
function legend(lines: readonly Line[]): readonly string[] {
  let [x, y]: [number, number] = [plot.left, 54]
  return lines.map(({ name }, index) => {
    const wide = 34 + name.length * 7.4
    if (x + wide > plot.right) [x, y] = [plot.left, y + 20]
    const line = `<line x1="${x}" x2="${x + 26}" y1="${y}" y2="${y}" stroke-width="2.25"/>`
    const text = `<text x="${x + 34}" y="${y + 4}">${escapeXml(name)}</text>`
    const entry = coloured(index, line + marker(index, x + 13, y)) + text
    x = round(x + wide + 24)
    return entry
  })
}

function coloured(index: number, shapes: string): string {
  const colour = colours[index % colours.length]
  return `<g fill="${colour}" stroke="${colour}">${shapes}</g>`
}

function marker(index: number, x: number, y: number): string {
  return `<path transform="translate(${x} ${y})" d="${markers[index % markers.length]}"/>`
}

function tickLabel(tick: number): string {
  return tick.toLocaleString('en-US', { maximumSignificantDigits: 6 })
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
