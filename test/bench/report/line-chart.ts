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

const width = 760
const height = 440
const plot = { left: 76, right: 730, top: 92, bottom: 378 }
/** Told apart by people who see fewer colours, too, and by their markers. */
const styles = [
  { colour: '#0b63c5', marker: (x: number, y: number) => circle(x, y) },
  { colour: '#c2410c', marker: (x: number, y: number) => square(x, y) },
  { colour: '#4d7c0f', marker: (x: number, y: number) => diamond(x, y) },
  { colour: '#7e22ce', marker: (x: number, y: number) => circle(x, y) },
  { colour: '#57606a', marker: (x: number, y: number) => square(x, y) },
]
const grey = '#57606a'
const faint = '#e3e6ea'

/** A line chart as SVG, both axes logarithmic. */
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
    legend(lines),
    ...y.ticks.map((tick) => horizontal(tick, y.place(tick))),
    ...x.ticks.map((tick) => vertical(tick, x.place(tick))),
    `<text x="${middle}" y="${height - 14}" text-anchor="middle" fill="${grey}">${escapeXml(xLabel)}</text>`,
    `<text transform="translate(20 ${(plot.top + plot.bottom) / 2}) rotate(-90)" text-anchor="middle" fill="${grey}">${escapeXml(yLabel)}</text>`,
    ...lines.map((line, index) => drawLine(line, index, (px, py) => [x.place(px), y.place(py)])),
    '</svg>',
  ].join('\n')}\n`
}

interface Scale {
  readonly ticks: readonly number[]
  place(value: number): number
}

/** The fewer decades, the more ticks in each. */
function logScale(
  values: readonly number[],
  { from, to, padding }: { from: number; to: number; padding: number },
): Scale {
  const low = Math.log10(Math.min(...values) / padding)
  const high = Math.log10(Math.max(...values) * padding)
  const span = high - low
  const steps = span > 2.5 ? [1] : span > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 5, 7]
  const decades = Array.from(
    { length: Math.ceil(high) - Math.floor(low) + 1 },
    (_, index) => Math.floor(low) + index,
  )
  const ticks = decades.flatMap((decade) => steps.map((step) => step * 10 ** decade))
  const inside = (tick: number): boolean =>
    Math.log10(tick) >= low - 1e-9 && Math.log10(tick) <= high + 1e-9
  return {
    ticks: ticks.filter(inside),
    place: (value) => round(from + ((Math.log10(value) - low) / (high - low || 1)) * (to - from)),
  }
}

function horizontal(tick: number, y: number): string {
  return [
    `<line x1="${plot.left}" x2="${plot.right}" y1="${y}" y2="${y}" stroke="${faint}"/>`,
    `<text x="${plot.left - 10}" y="${y + 4}" text-anchor="end" fill="${grey}">${tickLabel(tick)}</text>`,
  ].join('\n')
}

function vertical(tick: number, x: number): string {
  return [
    `<line x1="${x}" x2="${x}" y1="${plot.top}" y2="${plot.bottom}" stroke="${faint}"/>`,
    `<text x="${x}" y="${plot.bottom + 22}" text-anchor="middle" fill="${grey}">${tickLabel(tick)}</text>`,
  ].join('\n')
}

function drawLine(
  { points }: Line,
  index: number,
  place: (x: number, y: number) => readonly [number, number],
): string {
  const { colour, marker } = styleOf(index)
  const placed = points.map(([x, y]) => place(x, y))
  const path = placed.map(([x, y]) => `${x},${y}`).join(' ')
  return [
    `<g fill="${colour}" stroke="${colour}">`,
    `<polyline points="${path}" fill="none" stroke-width="2.25" stroke-linejoin="round"/>`,
    ...placed.map(([x, y]) => marker(x, y)),
    '</g>',
  ].join('\n')
}

/** Goes on in a second row where the first is full. */
function legend(lines: readonly Line[]): string {
  let [x, y]: [number, number] = [plot.left, 54]
  const entries = lines.map(({ name }, index) => {
    const wide = 34 + name.length * 7.4
    if (x + wide > plot.right) [x, y] = [plot.left, y + 20]
    const { colour, marker } = styleOf(index)
    const entry = `<g fill="${colour}" stroke="${colour}"><line x1="${x}" x2="${x + 26}" y1="${y}" y2="${y}" stroke-width="2.25"/>${marker(x + 13, y)}</g><text x="${x + 34}" y="${y + 4}">${escapeXml(name)}</text>`
    x = round(x + wide + 24)
    return entry
  })
  return entries.join('\n')
}

function styleOf(index: number): (typeof styles)[number] {
  const style = styles[index % styles.length]
  if (!style) throw new Error('a chart has styles')
  return style
}

function circle(x: number, y: number): string {
  return `<circle cx="${x}" cy="${y}" r="4"/>`
}

function square(x: number, y: number): string {
  return `<rect x="${round(x - 3.75)}" y="${round(y - 3.75)}" width="7.5" height="7.5"/>`
}

function diamond(x: number, y: number): string {
  return `<path d="M${x} ${round(y - 5)}L${round(x + 5)} ${y}L${x} ${round(y + 5)}L${round(x - 5)} ${y}Z"/>`
}

function tickLabel(tick: number): string {
  return tick.toLocaleString('en-US', { maximumSignificantDigits: 6 })
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
