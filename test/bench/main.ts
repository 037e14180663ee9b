import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Cleanups } from './harness/cleanups.ts'
import { note } from './harness/progress.ts'
import { type BenchOptions, benchOptions, UsageError, usage } from './options.ts'
import { describeMachine, versionsOf } from './report/machine.ts'
import { markdown } from './report/markdown.ts'
import { writePlots } from './report/plots.ts'
import { Report } from './report/report.ts'
import { concurrency } from './suites/concurrency.ts'
import { growth } from './suites/growth.ts'
import { http } from './suites/http.ts'
import { memory } from './suites/memory.ts'
import { observe } from './suites/observe.ts'
import { prefetch } from './suites/prefetch.ts'

const suites = [concurrency, memory, http, growth, observe, prefetch]
const packages = [
  '@sluice/core',
  '@sluice/metrics',
  'express',
  'fastify',
  'ioredis',
  'express-rate-limit',
  'rate-limit-redis',
  'rate-limiter-flexible',
  '@fastify/rate-limit',
  'autocannon',
]

const cleanups = new Cleanups()

async function main(options: BenchOptions): Promise<void> {
  const { quick } = options
  const machine = describeMachine()
  const report = new Report()
  Object.assign(report.versions, versionsOf(packages))
  await makeFolders(options)
  const startedAt = performance.now()
  for (const suite of suites) {
    if (options.suites.includes(suite.name)) await suite.run({ ...options, report, cleanups })
  }
  const tookSeconds = Math.round((performance.now() - startedAt) / 1000)
  note(`done in ${tookSeconds} s`)

  const { rows, comparisons, failures, versions, notes } = report
  const tables = markdown(report, machine)
  process.stdout.write(tables)
  if (options.markdown !== undefined) await writeFile(options.markdown, tables)
  if (options.plots !== undefined) await writePlots(report, options.plots)
  if (options.json !== undefined) {
    const all = { machine, versions, quick, tookSeconds, notes, rows, comparisons, failures }
    await writeFile(options.json, `${JSON.stringify(all, undefined, 2)}\n`)
  }
  if (failures.length > 0) process.exitCode = 1
}

/** Now, and not after ten minutes of measuring. */
async function makeFolders({ json, markdown: tables, plots }: BenchOptions): Promise<void> {
  const folders = [json, tables].flatMap((file) => (file === undefined ? [] : [dirname(file)]))
  for (const folder of [...folders, ...(plots === undefined ? [] : [plots])]) {
    await mkdir(folder, { recursive: true })
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await cleanups.run()
    process.exit(signal === 'SIGINT' ? 130 : 143)
  })
}

try {
  await main(benchOptions(process.argv.slice(2), suites))
} catch (error) {
  const isUsage = error instanceof UsageError
  process.stderr.write(isUsage ? `${error.message}\n\n${usage}\n` : `\n${stackOf(error)}\n`)
  process.exitCode = isUsage ? 2 : 1
} finally {
  await cleanups.run()
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
