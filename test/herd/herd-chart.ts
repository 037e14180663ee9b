import { escapeXml } from '../bench/report/line-chart.ts'
import type { Herd } from './run-herd.ts'

const width = 760
const plot = { left: 64, right: 736 }
const panel = { top: 84, height: 104, gap: 44 }
const binMs = 250
const served = '#0b63c5'
const refused = '#c2410c'
const grey = '#57606a'

/** What arrived when, as SVG: a panel of bars for each herd, all with the same times, each with its own scale. */
export function herdChart(title: string, herds: readonly Herd[], limit: number): string {
  const bins = Math.ceil((Math.max(...herds.map(lastMs)) + 1) / binMs)
  const height = panel.top + herds.length * (panel.height + panel.gap) + 8
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(title)}" font-family="system-ui, sans-serif" font-size="13" fill="#1f2328">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="${plot.left}" y="30" font-size="17" font-weight="600">${escapeXml(title)}</text>`,
    `<rect x="${plot.left}" y="44" width="11" height="11" fill="${served}"/><text x="${plot.left + 17}" y="54">served</text>`,
    `<rect x="${plot.left + 80}" y="44" width="11" height="11" fill="${refused}"/><text x="${plot.left + 97}" y="54">refused</text>`,
    `<line x1="${plot.left + 170}" x2="${plot.left + 194}" y1="50" y2="50" stroke="${grey}" stroke-dasharray="4 3"/><text x="${plot.left + 200}" y="54">the limit; requests in each quarter of a second</text>`,
    ...herds.map((herd, index) =>
      drawPanel(herd, { top: panel.top + index * (panel.height + panel.gap), bins, limit }),
    ),
    '</svg>',
  ].join('\n')}\n`
}

function drawPanel(
  { name, arrivals }: Herd,
  { top, bins, limit }: { top: number; bins: number; limit: number },
): string {
  const counts = Array.from({ length: bins }, () => ({ served: 0, refused: 0 }))
  for (const { atMs, isServed } of arrivals) {
    const bin = counts[Math.floor(atMs / binMs)]
    if (bin) bin[isServed ? 'served' : 'refused'] += 1
  }
  const most = Math.max(...counts.map((bin) => bin.served + bin.refused))
  const bottom = top + panel.height
  const y = (count: number): number => round(bottom - (count / most) * (panel.height - 18))
  const step = (plot.right - plot.left) / bins
  const bar = (index: number, from: number, count: number, colour: string): string =>
    count === 0
      ? ''
      : `<rect x="${round(plot.left + index * step + 0.5)}" y="${y(from + count)}" width="${round(step - 1)}" height="${round(y(from) - y(from + count))}" fill="${colour}"/>`
  const limitY = y((limit * binMs) / 1000)
  const seconds = Math.floor((bins * binMs) / 1000) + 1
  const every = Math.max(1, Math.ceil(seconds / 16))
  const labelled = Array.from({ length: Math.ceil(seconds / every) }, (_, at) => at * every)
  return [
    `<text x="${plot.left}" y="${top + 4}" font-weight="600">${escapeXml(name)}</text>`,
    `<text x="${plot.left - 8}" y="${y(most) + 4}" text-anchor="end" fill="${grey}">${most}</text>`,
    `<text x="${plot.left - 8}" y="${bottom + 4}" text-anchor="end" fill="${grey}">0</text>`,
    `<line x1="${plot.left}" x2="${plot.right}" y1="${bottom}" y2="${bottom}" stroke="${grey}"/>`,
    ...counts.map((bin, index) => bar(index, 0, bin.served, served)),
    ...counts.map((bin, index) => bar(index, bin.served, bin.refused, refused)),
    `<line x1="${plot.left}" x2="${plot.right}" y1="${limitY}" y2="${limitY}" stroke="${grey}" stroke-dasharray="4 3"/>`,
    ...labelled.map(
      (second) =>
        `<text x="${round(plot.left + (second * 1000 * step) / binMs)}" y="${bottom + 17}" text-anchor="middle" font-size="11" fill="${grey}">${second} s</text>`,
    ),
  ]
    .filter((line) => line !== '')
    .join('\n')
}

function lastMs({ arrivals }: Herd): number {
  return arrivals.at(-1)?.atMs ?? 0
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
