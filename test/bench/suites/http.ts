import type { Bench, Suite } from '../harness/bench.ts'
import { type BenchRedis, startBenchRedis } from '../harness/bench-redis.ts'
import { type Figures, quantile } from '../harness/figures.ts'
import { choosePinning } from '../harness/pinning.ts'
import { readRedis } from '../harness/redis-meter.ts'
import { interleave, openEach, type Series } from '../harness/rounds.ts'
import { startWorkers, type Workers } from '../harness/workers.ts'
import { type HttpContender, httpContenders } from '../http/http-contenders.ts'
import type { HttpProtocol } from '../http/http-server.ts'
import { clients, type Load, load } from '../http/load.ts'

/** What is measured: everything against its own kind, with the same framework and the same store. */
interface HttpCase extends Pick<HttpContender, 'framework'> {
  readonly store: 'memory' | 'redis'
  readonly traffic: 'allowed' | 'denied'
  readonly connections: number
}

const httpCases: readonly HttpCase[] = (['allowed', 'denied'] as const).flatMap((traffic) =>
  [4, 40, 200].flatMap((connections) =>
    (['express', 'fastify'] as const).flatMap((framework) =>
      (['memory', 'redis'] as const).map(
        (store): HttpCase => ({ traffic, connections, framework, store }),
      ),
    ),
  ),
)

function httpCaseName({ traffic, connections, framework, store }: HttpCase): string {
  const name = framework === 'express' ? 'Express' : 'Fastify'
  return `${traffic}, ${connections} connections, ${name}, ${store}`
}

/** Requests to real servers, each a process of its own: what limiting adds to the CPU of a request. */
export const http: Suite = {
  name: 'http',
  async run(bench) {
    const cases = httpCases.filter((one) => bench.isChosen(httpCaseName(one)))
    const contenders = httpContenders.filter((contender) => cases.some(takesPart(contender)))
    const redis = await startBenchRedis(bench)
    const pinning = choosePinning('servers', 'load and Redis')
    bench.report.notes.push(`Suite http: ${pinning.note}`)
    const env = { NODE_ENV: 'production' }
    const servers: Servers = startWorkers(bench, '../http/http-server.ts', { contenders, env })
    for (const { pid } of servers.all) pinning.pin('servers', pid)
    pinning.pin('load and Redis', redis.pid)
    pinning.pin('load and Redis', process.pid)
    for (const traffic of traffics) {
      const chosen = cases.filter((one) => one.traffic === traffic.name)
      if (chosen.length > 0) await runTraffic(bench, chosen, { redis, servers, traffic })
    }
    pinning.release(process.pid)
    servers.stop()
    await redis.stop()
  },
}

function takesPart({ framework, store }: HttpContender): (one: HttpCase) => boolean {
  return (one) => one.framework === framework && (store === 'none' || store === one.store)
}

type Servers = Workers<HttpProtocol, HttpContender>

/** `status` is that of every answer, bare ones aside; `warmUpMs` that of a quick run: until the JIT is done a request costs several times as much. */
const traffics = [
  { name: 'allowed', limit: 5_000, windowMs: 60_000, status: 200, warmUpMs: 600 },
  // Few enough that the warm-up uses them up, for so long that none comes back.
  { name: 'denied', limit: 1, windowMs: 3_600_000, status: 429, warmUpMs: 300 },
] as const

/** A slow server may have met some of its clients in no warm-up. */
const mostlyRight = 0.995
/** On a busy machine a request may miss the deadline of its store. */
const mayFail = 0.005

interface Stage {
  readonly redis: BenchRedis
  readonly servers: Servers
  readonly traffic: (typeof traffics)[number]
}

async function runTraffic(bench: Bench, cases: readonly HttpCase[], stage: Stage): Promise<void> {
  const { redis, servers, traffic } = stage
  const { name, limit, windowMs, warmUpMs } = traffic
  const opened = await openEach(bench.report, {
    ...{ suite: 'http', name },
    contenders: servers.contenders.filter((contender) => cases.some(takesPart(contender))),
    async open(contender) {
      const prefix = `bench.${name}.${contender.name.replaceAll(/[^A-Za-z]+/g, '-')}`
      const quota = { limit, windowMs, prefix, redisPort: redis.port }
      const port = await servers.of(contender).ask('listen', quota)
      await warmUp(port, warmUpMs * (bench.quick ? 1 : 3))
      return { contender, port }
    },
  })
  for (const connections of new Set(cases.map((one) => one.connections))) {
    const chosen = cases.filter((one) => one.connections === connections)
    const series = await interleave(bench.report, {
      ...{ suite: 'http', name: `${name}, ${connections} connections` },
      opened: new Map([...opened].filter(([contender]) => chosen.some(takesPart(contender)))),
      ...(bench.quick ? { rounds: 3, roundMs: 300 } : { rounds: 7, roundMs: 500 }),
      measure: ({ contender, port }, durationMs) =>
        measure(stage, contender, { port, durationMs, connections }),
    })
    for (const one of chosen) {
      const ofCase = series.filter(({ contender }) => takesPart(contender)(one))
      bench.report.add('http', httpCaseName(one), aboveBare(ofCase))
    }
  }
}

/** Until the JIT is done, and all clients have used up what they are refused after. */
async function warmUp(port: number, warmUpMs: number): Promise<void> {
  for (let durationMs = warmUpMs; ; durationMs *= 2) {
    const { requests } = await load({ port, durationMs })
    // Connections take their clients in turn, from the first one on each time.
    if (requests > 1.6 * clients) return
    if (durationMs > 10_000) throw new Error(`it answers ${requests} requests in ${durationMs} ms`)
  }
}

async function measure(
  { redis, servers, traffic }: Stage,
  contender: HttpContender,
  how: Load,
): Promise<Figures> {
  const server = servers.of(contender)
  const redisBefore = await readRedis(redis.control)
  const before = await server.ask('cpu', undefined)
  const { requests, elapsedMs, latenciesMs, statuses } = await load(how)
  const after = await server.ask('cpu', undefined)
  const redisAfter = await readRedis(redis.control)

  const expected = contender.store === 'none' ? 200 : traffic.status
  const right = statuses.get(expected) ?? 0
  if (right < mostlyRight * requests)
    throw new Error(`${requests - right} answers were not ${expected}`)
  const storeErrors = after.storeErrors - before.storeErrors
  if (storeErrors > mayFail * requests) throw new Error(`its store failed ${storeErrors} times`)
  return {
    perSecond: (requests / elapsedMs) * 1000,
    nodeCpuUs: (after.cpuUs - before.cpuUs) / requests,
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
    ...(contender.store === 'redis' && {
      redisCpuUs: (redisAfter.cpuUs - redisBefore.cpuUs) / requests,
      redisCommands: (redisAfter.commands - redisBefore.commands) / requests,
    }),
  }
}

/** Adds what each round took above the bare framework in the same round. */
function aboveBare(series: readonly Series[]): Series[] {
  const bare = series.find(({ contender }) => contender.role === 'reference')?.rounds ?? []
  return series.map(({ contender, rounds }) => {
    if (contender.role === 'reference') return { contender, rounds }
    const above = rounds.map((round, index): Figures => {
      const { nodeCpuUs = Number.NaN } = bare[index] ?? {}
      return { ...round, addedCpuUs: (round.nodeCpuUs ?? Number.NaN) - nodeCpuUs }
    })
    return { contender, rounds: above }
  })
}
