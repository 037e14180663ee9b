import { type Child, startChild } from '../../support/child.ts'
import type { Bench, Suite } from '../harness/bench.ts'
import { type BenchRedis, startBenchRedis } from '../harness/bench-redis.ts'
import { type Figures, quantile } from '../harness/figures.ts'
import { choosePinning } from '../harness/pinning.ts'
import { progress } from '../harness/progress.ts'
import { readRedis } from '../harness/redis-meter.ts'
import { interleave, leaveOut, type Series } from '../harness/rounds.ts'
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
    const servers = new Map(contenders.map((one) => [one, startServer(bench, one)]))
    for (const server of servers.values()) pinning.pin('servers', server.pid)
    pinning.pin('load and Redis', redis.pid)
    pinning.pin('load and Redis', process.pid)
    for (const traffic of [allowed, denied]) {
      const chosen = cases.filter((one) => one.traffic === traffic.name)
      if (chosen.length > 0) await runTraffic(bench, chosen, { redis, servers, traffic })
    }
    pinning.release(process.pid)
    for (const server of servers.values()) server.stop()
    await redis.stop()
  },
}

function takesPart({ framework, store }: HttpContender): (one: HttpCase) => boolean {
  return (one) => one.framework === framework && (store === 'none' || store === one.store)
}

type Server = Child<HttpProtocol>

interface Traffic {
  readonly name: HttpCase['traffic']
  readonly limit: number
  readonly windowMs: number
  /** What every answer has to be, bare ones aside. */
  readonly status: number
  /** In a quick run. Until the JIT is done a request costs several times as much. */
  readonly warmUpMs: number
}

const allowed: Traffic = {
  name: 'allowed',
  limit: 5_000,
  windowMs: 60_000,
  status: 200,
  warmUpMs: 600,
}
/** Few enough that the warm-up uses them up, for so long that none comes back. */
const denied: Traffic = {
  name: 'denied',
  limit: 1,
  windowMs: 3_600_000,
  status: 429,
  warmUpMs: 300,
}

/** A slow server may have met some of its clients in no warm-up. */
const mostlyRight = 0.995
/** On a busy machine a request may miss the deadline of its store. */
const mayFail = 0.005

interface Stage {
  readonly redis: BenchRedis
  readonly servers: ReadonlyMap<HttpContender, Server>
  readonly traffic: Traffic
}

async function runTraffic(bench: Bench, cases: readonly HttpCase[], stage: Stage): Promise<void> {
  const { redis, servers, traffic } = stage
  const { name, limit, windowMs, warmUpMs } = traffic
  const ports = new Map<HttpContender, number>()
  for (const [contender, server] of servers) {
    if (!cases.some(takesPart(contender))) continue
    progress(`http · ${name} · warming up ${contender.name}`)
    const prefix = `bench.${name}.${contender.name.replaceAll(/[^A-Za-z]+/g, '-')}`
    try {
      const quota = { limit, windowMs, prefix, redisPort: redis.port }
      const port = await server.ask('listen', quota)
      await warmUp(port, warmUpMs * (bench.quick ? 1 : 3))
      ports.set(contender, port)
    } catch (error) {
      leaveOut(bench.report, { suite: 'http', case: name, subject: contender.name, error })
    }
  }
  for (const connections of new Set(cases.map((one) => one.connections))) {
    const chosen = cases.filter((one) => one.connections === connections)
    const contenders = [...ports.keys()].filter((contender) => chosen.some(takesPart(contender)))
    const series = await interleave(bench.report, {
      ...{ suite: 'http', name: `${name}, ${connections} connections`, contenders },
      ...(bench.quick ? { rounds: 3, roundMs: 300 } : { rounds: 7, roundMs: 500 }),
      measure: (contender, durationMs) =>
        measure(stage, contender, { port: ports.get(contender) ?? 0, durationMs, connections }),
    })
    for (const one of chosen) {
      const names = contenders.filter((each) => takesPart(each)(one)).map((each) => each.name)
      const ofCase = series.filter(({ contender }) => names.includes(contender.name))
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
  const server = servers.get(contender)
  if (!server) throw new Error('no server')
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
  const bare = series.find(({ contender }) => contender.role === 'reference')
  return series.map(({ contender, rounds }) => {
    if (contender.role === 'reference') return { contender, rounds }
    const above = rounds.map((round, index): Figures => {
      const { nodeCpuUs = Number.NaN } = bare?.rounds[index] ?? {}
      return { ...round, addedCpuUs: (round.nodeCpuUs ?? Number.NaN) - nodeCpuUs }
    })
    return { contender, rounds: above }
  })
}

function startServer({ cleanups }: Bench, contender: HttpContender): Server {
  const file = new URL('../http/http-server.ts', import.meta.url)
  return startChild(file, { cleanups, args: [contender.name], env: { NODE_ENV: 'production' } })
}
