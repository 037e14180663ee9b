import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { Cleanups } from './harness/cleanups.ts'
import { note } from './harness/progress.ts'
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

// npm run bench -- [--quick] [--suite NAME,NAME] [--case TEXT] [--markdown FILE] [--plots FOLDER]

const suites = [concurrency, memory, http, growth, observe, prefetch]
const packages = [
  ...['@sluice/core', '@sluice/metrics', 'express', 'fastify', 'ioredis', 'express-rate-limit'],
  ...['rate-limit-redis', 'rate-limiter-flexible', '@fastify/rate-limit', 'autocannon'],
]
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    markdown: { type: 'string' },
    plots: { type: 'string' },
    case: { type: 'string', default: '' },
    suite: { type: 'string', default: suites.map(({ name }) => name).join(',') },
  },
})
const cleanups = new Cleanups()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await cleanups.run()
    process.exit(signal === 'SIGINT' ? 130 : 143)
  })
}

try {
  const report = new Report()
  const machine = describeMachine()
  Object.assign(report.versions, versionsOf(packages))
  // Now, and not after ten minutes of measuring.
  if (options.markdown) await mkdir(dirname(options.markdown), { recursive: true })
  if (options.plots) await mkdir(options.plots, { recursive: true })
  const isChosen = (name: string) => name.includes(options.case)
  const chosen = options.suite.split(',').map((name) => suites.find((suite) => suite.name === name))
  for (const suite of chosen) {
    if (!suite) throw new Error(`--suite takes ${suites.map(({ name }) => name).join(', ')}`)
    await suite.run({ quick: options.quick, isChosen, report, cleanups })
  }
  note(`done in ${Math.round(performance.now() / 1000)} s`)
  const tables = markdown(report, machine)
  process.stdout.write(tables)
  if (options.markdown) await writeFile(options.markdown, tables)
  if (options.plots) await writePlots(report, options.plots)
  if (report.failures.length > 0) process.exitCode = 1
} finally {
  await cleanups.run()
}
