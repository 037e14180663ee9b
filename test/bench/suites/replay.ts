import type { Bench, Suite } from '../harness/bench.ts'
import { startBenchRedis } from '../harness/bench-redis.ts'
import { type Child, startChild } from '../harness/child.ts'
import { type Figures, quantile } from '../harness/figures.ts'
import { progress } from '../harness/progress.ts'
import { type Contender, interleave } from '../harness/rounds.ts'
import { load } from '../http/load.ts'
import { judge } from '../replay/judge.ts'
import { play } from '../replay/play.ts'
import type { ReplayProtocol } from '../replay/replay-server.ts'
import { trace } from '../replay/trace.ts'
import { type AlgorithmName, algorithmNames, holdsLeases } from '../subjects/algorithm-policy.ts'

/** Recorded-like traffic over HTTP: how much each algorithm admits of what an exact one would, and how soon it answers. */
export const replay: Suite = {
  name: 'replay',
  async run(bench) {
    const redis = await startBenchRedis(bench)
    for (const store of ['memory', 'redis'] as const) {
      const server = startServer(bench)
      const redisPort = store === 'redis' ? { redisPort: redis.port } : {}
      await runStore(bench, store, { server, redisPort })
      server.stop()
    }
    await redis.stop()
  },
}

type Server = Child<ReplayProtocol>

interface Player extends Contender {
  readonly algorithm: AlgorithmName
}

/** Days in seconds: small windows, and requests that follow each other as fast. */
const quota = { limit: 10, windowMs: 500 } as const
const traffic = { clients: 200, requestsPerSecond: 800, seed: 20 } as const

/** Leases bound what is under way, and not what passes in a window, which is what is judged here. */
const players: readonly Player[] = algorithmNames
  .filter((algorithm) => !holdsLeases(algorithm))
  .map((algorithm) => ({ name: `sluice ${algorithm}`, role: 'ours', algorithm }))

interface Stage {
  readonly server: Server
  readonly redisPort: { readonly redisPort?: number }
}

async function runStore(bench: Bench, store: string, { server, redisPort }: Stage): Promise<void> {
  const { quick, report } = bench
  const place = { suite: 'replay', case: store }
  const ports = new Map<AlgorithmName, number>()

  progress(`replay · ${store} · warming up`)
  const [first] = players
  // All algorithms share a process; without this the first would pay for the JIT of everybody.
  if (first) await load({ port: await portOf(first.algorithm), durationMs: 1_000 })

  async function portOf(algorithm: AlgorithmName): Promise<number> {
    const port =
      ports.get(algorithm) ?? (await server.ask('listen', { ...quota, ...redisPort, algorithm }))
    ports.set(algorithm, port)
    return port
  }

  const series = await interleave({
    contenders: players,
    rounds: quick ? 1 : 2,
    roundMs: quick ? 700 : 2_500,
    measure: async ({ name, algorithm }, durationMs): Promise<Figures> => {
      progress(`replay · ${store} · ${name}`)
      const port = await portOf(algorithm)
      const latenciesMs = await play(port, trace({ ...traffic, durationMs }))
      const journal = await server.ask('journal', algorithm)
      return {
        ...judge(journal, quota),
        p50Ms: quantile(latenciesMs, 0.5),
        p99Ms: quantile(latenciesMs, 0.99),
      }
    },
    onFailure: (player, error) => report.fail(place, player.name, error),
  })
  report.add('replay', store, series)
}

function startServer({ cleanups }: Bench): Server {
  const file = new URL('../replay/replay-server.ts', import.meta.url)
  return startChild(file, { cleanups, env: { NODE_ENV: 'production' } })
}
