import type { Bench, Suite } from '../harness/bench.ts'
import { startChild } from '../harness/child.ts'
import type { Figures } from '../harness/figures.ts'
import { progress } from '../harness/progress.ts'
import { type Contender, interleave } from '../harness/rounds.ts'
import { observeServers } from '../http/http-contenders.ts'
import { load } from '../http/load.ts'
import { observeContenders } from '../memory/sluice-memory.ts'
import type { PageProtocol } from '../observe/page-worker.ts'
import type { Bar } from '../report/bars.ts'
import { type Server, startServer, warmUp } from './http.ts'
import { runMemoryCase, startWorkers } from './memory.ts'

/** What it costs to be observed. */
export const observe: Suite = {
  name: 'observe',
  async run(bench) {
    await decisions(bench)
    await requests(bench)
    await scrapes(bench)
  },
}

const suite = 'observe'
const keyCases = { few: 'a decision, 500 keys', many: 'a decision, 10,000 keys in turn' } as const
const httpCase = 'requests, Fastify, memory'
const pageCase = 'a scrape'

async function decisions(bench: Bench): Promise<void> {
  const contenders = Object.values(observeContenders)
  // Filled by 100,000 requests each, so that the JIT is done.
  for (const [name, keys, limit] of [
    [keyCases.few, 500, 200],
    [keyCases.many, 10_000, 10],
  ] as const) {
    const workers = startWorkers(bench, contenders)
    const setting = { keys, limit, windowMs: 3_600_000, traffic: 'allowed' } as const
    await runMemoryCase(bench, workers, { suite, name, setting, rounds: bench.quick ? 9 : 25 })
    for (const worker of workers.values()) worker.stop()
  }
}

async function requests(bench: Bench): Promise<void> {
  const { quick, report } = bench
  const contenders = Object.values(observeServers)
  const servers = new Map<string, Server>(
    contenders.map((contender) => [contender.name, startServer(bench, contender)]),
  )
  const ports = new Map<string, number>()
  const series = await interleave({
    contenders,
    rounds: quick ? 7 : 21,
    roundMs: quick ? 400 : 600,
    measure: async ({ name }, durationMs) => {
      progress(`${suite} · ${httpCase} · ${name}`)
      const server = servers.get(name)
      if (!server) throw new Error('no server')
      const port = ports.get(name)
      if (port !== undefined) {
        const before = await server.ask('cpu', undefined)
        const { requests: count, elapsedMs } = await load({ port, durationMs })
        const after = await server.ask('cpu', undefined)
        return {
          perSecond: (count / elapsedMs) * 1_000,
          nodeCpuUs: (after.cpuUs - before.cpuUs) / count,
        }
      }
      const quota = { limit: 5_000, windowMs: 60_000, prefix: 'bench', redisPort: 0 }
      const opened = await server.ask('listen', quota)
      ports.set(name, opened)
      await warmUp(opened, quick ? 1_000 : 2_000)
      return {}
    },
    onFailure: ({ name }, error) => report.fail({ suite, case: httpCase }, name, error),
  })
  for (const server of servers.values()) server.stop()
  report.add(suite, httpCase, series)
}

const pages = {
  with: { name: 'page with 2,000 series', role: 'ours', policies: 110 },
  without: { name: 'page of a process that nobody asks', role: 'reference', policies: 0 },
} as const satisfies Record<string, Contender & { policies: number }>

async function scrapes({ cleanups, quick, report }: Bench): Promise<void> {
  const file = new URL('../observe/page-worker.ts', import.meta.url)
  const contenders = Object.values(pages)
  const children = contenders.map((contender) => ({
    ...contender,
    child: startChild<PageProtocol>(file, { cleanups }),
  }))
  for (const { child, policies } of children) await child.ask('open', { policies })
  const series = await interleave({
    contenders: children,
    rounds: quick ? 5 : 15,
    roundMs: quick ? 200 : 400,
    measure: ({ name, child }, durationMs): Promise<Figures> => {
      progress(`${suite} · ${pageCase} · ${name}`)
      return child.ask('round', { durationMs })
    },
    onFailure: ({ name }, error) => report.fail({ suite, case: pageCase }, name, error),
  })
  for (const { child } of children) child.stop()
  report.add(suite, pageCase, series)
}

/** What being observed may cost. */
export const observeBars: readonly Bar[] = [
  ...Object.values(keyCases).map(
    (name): Bar => ({
      ...{ suite, case: name, figure: 'nodeCpuUs', unit: 'µs', isDifference: true, atMost: 0.15 },
      subject: observeContenders.with.name,
      against: observeContenders.without.name,
      text: `${name}: what metrics and the busiest keys add to Node CPU`,
    }),
  ),
  {
    ...{ suite, case: httpCase, figure: 'perSecond', unit: '/s', atLeast: 0.97 },
    subject: observeServers.with.name,
    against: observeServers.without.name,
    text: `${httpCase}: throughput`,
  },
  {
    ...{ suite, case: pageCase, figure: 'scrapeCpuMs', unit: 'ms', isDifference: true, atMost: 10 },
    subject: pages.with.name,
    against: pages.without.name,
    text: 'a scrape of 2,000 series',
  },
]
