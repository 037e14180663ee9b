import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { growthLimits, limitCase } from '../suites/growth.ts'
import { type Line, lineChart } from './line-chart.ts'
import type { Report } from './report.ts'

/** Draws what the suite `growth` measured over limits. */
export async function writePlots(report: Report, folder: string): Promise<void> {
  const charts = {
    'cost-against-limit.svg': lineChart({
      title: 'CPU of Redis for a check, full logs',
      xLabel: 'limit (rate-limit-redis: a fixed window, one number a key)',
      yLabel: 'µs a check',
      lines: linesOf(report, 'redisCpuUs'),
    }),
    'bytes-against-limit.svg': lineChart({
      title: 'Memory of Redis for a recorded request, full logs',
      xLabel: 'limit',
      yLabel: 'bytes a recorded request',
      lines: linesOf(report, 'bytesPerUnit'),
    }),
  }
  for (const [file, svg] of Object.entries(charts)) await writeFile(join(folder, file), svg)
}

/** One line for every subject that has the figure, over the limits that were measured. */
function linesOf(report: Report, figure: string): Line[] {
  const lines = new Map<string, [number, number][]>()
  for (const limit of growthLimits({ quick: false })) {
    const rows = report.rows.filter(
      (row) => row.suite === 'growth' && row.case === limitCase(limit),
    )
    for (const { subject, figures } of rows) {
      const value = figures[figure]
      if (value === undefined) continue
      lines.set(subject, [...(lines.get(subject) ?? []), [limit, value]])
    }
  }
  return [...lines].map(([name, points]) => ({ name, points }))
}
