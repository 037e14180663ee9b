import type { Bench, Suite } from '../harness/bench.ts'
import { type BenchRedis, startBenchRedis } from '../harness/bench-redis.ts'
import { type Child, startChild } from '../harness/child.ts'
import { type Figures, quantile } from '../harness/figures.ts'
import { progress } from '../harness/progress.ts'
import { readRedis } from '../harness/redis-meter.ts'
import { interleave, type Series } from '../harness/rounds.ts'
import type { HttpContender } from '../http/http-contender.ts'
import { httpContenders } from '../http/http-contenders.ts'
import type { HttpProtocol } from '../http/http-server.ts'
import { clients, load } from '../http/load.ts'

/** Requests to real servers, each a process of its own: what limiting adds to the CPU of a request. */
export const http: Suite = {
  name: 'http',
  async run(bench) {
    const redis = await startBenchRedis(bench)
    const servers = new Map(
      httpContenders.map((contender) => [contender, startServer(bench, contender)]),
    )
    for (const traffic of [allowed, denied]) await runTraffic(bench, { redis, servers, traffic })
    for (const server of servers.values()) server.stop()
    await redis.stop()
  },
}

type Server = Child<HttpProtocol>

interface Traffic {
  readonly name: string
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

interface Stage {
  readonly redis: BenchRedis
  readonly servers: ReadonlyMap<HttpContender, Server>
  readonly traffic: Traffic
}

async function runTraffic(bench: Bench, stage: Stage): Promise<void> {
  const { traffic, redis, servers } = stage
  const { quick, report } = bench
  const { name, limit, windowMs } = traffic
  const ports = new Map<HttpContender, number>()
  const place = { suite: 'http', case: name }

  const series = await interleave({
    contenders: httpContenders,
    rounds: quick ? 2 : 9,
    roundMs: quick ? 300 : 400,
    measure: async (contender, durationMs) => {
      progress(`http · ${name} · ${contender.name}`)
      const server = servers.get(contender)
      if (!server) throw new Error('no server')
      const port = ports.get(contender)
      if (port !== undefined)
        return measure({ redis, server, traffic, port, durationMs }, contender)
      const prefix = `bench.${name}.${contender.name.replaceAll(/[^A-Za-z]+/g, '-')}`
      const quota = { limit, windowMs, prefix, redisPort: redis.port }
      const opened = await server.ask('listen', quota)
      ports.set(contender, opened)
      await warmUp(opened, { ...traffic, warmUpMs: traffic.warmUpMs * (quick ? 1 : 3) })
      return {}
    },
    onFailure: (contender, error) => report.fail(place, contender.name, error),
  })
  // Against their own kind: same framework, same store.
  for (const framework of ['express', 'fastify'] as const) {
    for (const store of ['memory', 'redis'] as const) {
      const isHere = ({ contender }: Series): boolean => {
        const known = httpContenders.find((one) => one.name === contender.name)
        return known?.framework === framework && [store, 'none'].includes(known.store)
      }
      report.add('http', httpCase(name, framework, store), aboveBare(series.filter(isHere)))
    }
  }
}

/** The names of cases, which headlines refer to. */
export function httpCase(
  traffic: string,
  framework: HttpContender['framework'],
  store: HttpContender['store'],
): string {
  return `${traffic}, ${framework === 'express' ? 'Express' : 'Fastify'}, ${store}`
}

/** Until the JIT is done, and all clients have used up what they are refused after. */
async function warmUp(port: number, { warmUpMs }: Traffic): Promise<void> {
  for (let durationMs = warmUpMs; ; durationMs *= 2) {
    const { requests } = await load({ port, durationMs })
    // Connections take their clients in turn, from the first one on each time.
    if (requests > 1.6 * clients) return
    if (durationMs > 10_000) throw new Error(`it answers ${requests} requests in ${durationMs} ms`)
  }
}

function expectedStatus({ store }: HttpContender, { status }: Traffic): number {
  return store === 'none' ? 200 : status
}

interface Measurement {
  readonly redis: BenchRedis
  readonly server: Server
  readonly traffic: Traffic
  readonly port: number
  readonly durationMs: number
}

async function measure(measurement: Measurement, contender: HttpContender): Promise<Figures> {
  const { redis, server, traffic, port, durationMs } = measurement
  const redisBefore = await readRedis(redis.control)
  const before = await server.ask('cpu', undefined)
  const { requests, elapsedMs, latenciesMs, statuses } = await load({ port, durationMs })
  const after = await server.ask('cpu', undefined)
  const redisAfter = await readRedis(redis.control)

  const expected = expectedStatus(contender, traffic)
  const right = statuses.get(expected) ?? 0
  if (right < mostlyRight * requests)
    throw new Error(`${requests - right} answers were not ${expected}`)
  if (after.storeErrors > 0) throw new Error(`its store failed ${after.storeErrors} times`)
  const figures = {
    perSecond: (requests / elapsedMs) * 1000,
    nodeCpuUs: (after.cpuUs - before.cpuUs) / requests,
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
  }
  if (contender.store !== 'redis') return figures
  return {
    ...figures,
    redisCpuUs: (redisAfter.cpuUs - redisBefore.cpuUs) / requests,
    redisCommands: (redisAfter.commands - redisBefore.commands) / requests,
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
