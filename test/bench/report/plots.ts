import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inFlightCase } from '../suites/concurrency.ts'
import { growthLimits, limitCase } from '../suites/growth.ts'
import { type Line, lineChart } from './line-chart.ts'
import type { Report } from './report.ts'

/** The cases of a plot, by the values that stand on its horizontal axis. */
interface Cases {
  readonly suite: string
  readonly cases: ReadonlyMap<number, string>
}

interface Plot {
  readonly title: string
  readonly xLabel: string
  readonly yLabel: string
  readonly figure: string
  readonly of: Cases
}

const growth = casesOf('growth', growthLimits, limitCase)
const concurrency = casesOf('concurrency', [1, 2, 4, 8, 16, 32, 64, 256], inFlightCase)

const plots: Readonly<Record<string, Plot>> = {
  'cost-against-limit.svg': {
    title: 'CPU of Redis for a check, full logs',
    xLabel: 'limit (rate-limit-redis: a fixed window, one number a key)',
    yLabel: 'µs a check',
    figure: 'redisCpuUs',
    of: growth,
  },
  'bytes-against-limit.svg': {
    title: 'Memory of Redis for a recorded request, full logs',
    xLabel: 'limit',
    yLabel: 'bytes a recorded request',
    figure: 'bytesPerUnit',
    of: growth,
  },
  'cost-against-concurrency.svg': {
    title: 'CPU of Node and Redis for a check',
    xLabel: 'requests in flight (the peers count fixed windows)',
    yLabel: 'µs a check',
    figure: 'bothCpuUs',
    of: concurrency,
  },
}

/** Suites of which there is a plot. */
export const plottedSuites: readonly string[] = [
  ...new Set(Object.values(plots).map(({ of }) => of.suite)),
]

/** Draws what was measured: each plot whose suite took part. */
export async function writePlots(report: Report, folder: string): Promise<void> {
  for (const [file, { of, figure, ...labels }] of Object.entries(plots)) {
    const lines = linesOf(report, of, figure)
    if (lines.length > 0) await writeFile(join(folder, file), lineChart({ ...labels, lines }))
  }
}

/** One line for every subject that has the figure, over the values that were measured. */
function linesOf(report: Report, { suite, cases }: Cases, figure: string): Line[] {
  const lines = new Map<string, [number, number][]>()
  for (const [x, name] of cases) {
    for (const row of report.rows.filter((each) => each.suite === suite && each.case === name)) {
      const value = row.figures[figure]
      // A logarithmic axis has no place for 0.
      if (value === undefined || value <= 0) continue
      lines.set(row.subject, [...(lines.get(row.subject) ?? []), [x, value]])
    }
  }
  return [...lines].map(([name, points]) => ({ name, points }))
}

function casesOf(
  suite: string,
  values: readonly number[],
  nameOf: (value: number) => string,
): Cases {
  return { suite, cases: new Map(values.map((value) => [value, nameOf(value)])) }
}
