import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Line, lineChart } from './line-chart.ts'
import type { Report } from './report.ts'

/** Each draws a figure of the cases whose names have the number that stands on its horizontal axis. */
const plots = {
  'cost-against-limit.svg': {
    title: 'CPU of Redis for a check, full logs',
    xLabel: 'limit (rate-limit-redis: a fixed window, one number a key)',
    yLabel: 'µs a check',
    ...{ suite: 'growth', cases: /^limit ([\d,]+)$/, figure: 'redisCpuUs' },
  },
  'bytes-against-limit.svg': {
    title: 'Memory of Redis for a recorded request, full logs',
    xLabel: 'limit',
    yLabel: 'bytes a recorded request',
    ...{ suite: 'growth', cases: /^limit ([\d,]+)$/, figure: 'bytesPerUnit' },
  },
  'cost-against-concurrency.svg': {
    title: 'CPU of Node and Redis for a check',
    xLabel: 'requests in flight (the peers count fixed windows)',
    yLabel: 'µs a check',
    ...{ suite: 'concurrency', cases: /^(\d+) in flight$/, figure: 'bothCpuUs' },
  },
} as const

/** Draws each plot whose suite took part. */
export async function writePlots({ rows }: Report, folder: string): Promise<void> {
  for (const [file, { suite, cases, figure, ...labels }] of Object.entries(plots)) {
    const points = new Map<string, Line['points']>()
    for (const { subject, figures, ...row } of rows) {
      const [, x] = cases.exec(row.case) ?? []
      const value = figures[figure]
      // A logarithmic axis has no place for 0.
      if (row.suite !== suite || !x || !value) continue
      const point = [Number(x.replaceAll(',', '')), value] as const
      points.set(subject, [...(points.get(subject) ?? []), point])
    }
    const lines = [...points].map(([name, points]) => ({ name, points }))
    if (lines.length > 0) await writeFile(join(folder, file), lineChart({ ...labels, lines }))
  }
}
