import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { checkHistory, readHistory } from '@sluice/testing/histories'
import { describe, expect, it } from 'vitest'
import { keepHistory, note, times } from '../evidence/figures.ts'
import { startTcpProxy, type TcpProxy } from '../faults/tcp-proxy.ts'
import { bundledScript } from '../support/bundled-script.ts'
import { startRedis } from '../support/redis-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import type { WorkerSettings } from './oracle-worker.ts'

const seconds = 12 * times
const seed = Number(process.env.EVIDENCE_SEED ?? Math.floor(Math.random() * 1_000_000))
const script = await bundledScript(new URL('oracle-worker.ts', import.meta.url))
const limit = 300
const window = 2_000

let draws = seed

function random(): number {
  draws = (draws * 1_103_515_245 + 12_345) % 2 ** 31
  return draws / 2 ** 31
}

const regionCount = 4
const share = 0.6 / regionCount
const shares = Object.fromEntries(['r0', 'r1', 'r2', 'r3'].map((name) => [name, share]))

interface Kind {
  readonly name: string
  readonly seconds: number
  readonly processes: number
  /** Each region has two processes, and a Redis of its own. @default 0 */
  readonly regions?: number
  /** @default 0 */
  readonly maxUncounted?: number
  readonly keys: readonly string[]
}

const keys = ['plain', 'changing', 'refunded', 'reset']
const kinds: readonly Kind[] = [
  { name: '4 processes with grants', seconds, processes: 4, keys },
  {
    ...{ name: '4 processes that decide before the count', seconds: seconds / 2, processes: 4 },
    ...{ maxUncounted: 30, keys },
  },
  {
    ...{ name: '4 regions of two processes', seconds: seconds / 2, processes: 2 * regionCount },
    ...{ regions: regionCount, keys: ['plain', 'changing', 'refunded', 'hot', 'central'] },
  },
]

describe.each(kinds)('$name, and faults of all kinds', (kind) => {
  const { processes, regions = 0, maxUncounted = 0 } = kind

  it(`keep their bound in any rolling window, all together (seed ${seed})`, {
    timeout: (seconds + 90) * 1_000,
  }, async ({ task }) => {
    let kills = 0
    /** Units that processes, if they were not killed, took without asking the store of all. */
    let ahead = 0
    using folder = temporaryFolder('oracle')
    const redis = await startRedis()
    const locals = await Promise.all(Array.from({ length: regions }, () => startRedis()))
    const proxies = await Promise.all(
      Array.from({ length: processes }, () => startTcpProxy(redis.port)),
    )
    const files: string[] = []
    const fleet = proxies.map(start)

    function start(proxy: TcpProxy, index: number): ChildProcess {
      const file = join(folder.path, `${files.length}.txt`)
      files.push(file)
      const local = locals[index % regions]
      const settings: WorkerSettings = {
        ...{ url: `redis://127.0.0.1:${proxy.port}`, maxUncounted, file, limit, window },
        seed: files.length + seed,
        ...(local && { region: { name: `r${index % regions}`, url: local.url, shares } }),
      }
      const args = [script, JSON.stringify(settings)]
      const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
      child.stdout?.on('data', (text) => {
        ahead += Number.parseInt(text, 10) || 0
      })
      return child
    }

    const faults: readonly ((index: number, proxy: TcpProxy) => unknown)[] = [
      (index, proxy) => {
        kills += 1
        fleet[index]?.kill('SIGKILL')
        fleet[index] = start(proxy, index)
      },
      async (index) => {
        fleet[index]?.kill('SIGSTOP')
        await sleep(random() * 600)
        fleet[index]?.kill('SIGCONT')
      },
      (_index, proxy) => proxy.disturb({ requestDelayMs: random() * 300 }),
      (_index, proxy) =>
        proxy.disturb({ replyDelayMs: random() * 300, stall: { every: 7, forMs: 400 } }),
      (_index, proxy) => proxy.disturb({ cutEvery: 20 }),
      // Both processes of a region are cut off.
      async (index) => {
        const isCut = (other: number) =>
          regions > 0 ? other % regions === index % regions : other === index
        const cut = proxies.filter((_, other) => isCut(other))
        await Promise.all(cut.map((proxy) => proxy.refuse()))
        await sleep(random() * (regions > 0 ? 1_000 : 500))
        await Promise.all(cut.map((proxy) => proxy.accept()))
      },
      async () => {
        redis.pause()
        await sleep(random() * 400)
        redis.resume()
      },
    ]

    await Promise.all(fleet.map((child) => child.stdout && once(child.stdout, 'data')))
    const endsAt = performance.now() + kind.seconds * 1_000
    while (performance.now() < endsAt) {
      await sleep(random() * 500)
      const index = Math.floor(random() * processes)
      const proxy = proxies[index]
      if (!proxy) continue
      await faults[Math.floor(random() * faults.length)]?.(index, proxy)
      await sleep(random() * 500)
      proxy.disturb({})
    }
    await Promise.all(fleet.map(end))
    await Promise.all(proxies.map((proxy) => proxy.close()))
    await Promise.all([redis, ...locals].map((server) => server.stop()))

    // A process that was killed takes its units with it.
    const over = maxUncounted * (processes + kills)
    const lines = files.flatMap((file) => readHistory(readIfThere(file)))
    const law = { limit, windowMs: window, extraUnits: over }
    const laws = { oracle: law, hot: law, central: law }
    const reports = kind.keys.map((key) => {
      const own = lines.filter((line) => line.key === key)
      return { key, ...checkHistory(own, laws) }
    })
    const admittedUnits = reports.reduce((sum, report) => sum + report.admittedUnits, 0)
    note(task, { witnessLines: lines.length, admittedUnits, kills, seconds: kind.seconds })
    if (reports.some(({ findings }) => findings.length > 0)) keepHistory(kind.name, lines)
    for (const { key, findings, admittedUnits } of reports) {
      expect({ key, findings }).toEqual({ key, findings: [] })
      expect(admittedUnits).toBeGreaterThan(0)
    }
    // A window is fuller than the share of one region.
    if (regions > 0) expect(reports[0]?.fullest).toBeGreaterThan(share * limit)
    if (maxUncounted === 0) expect(ahead).toBeGreaterThan(0)
  })
})

/** A process that was killed early has written none. */
function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

async function end(child: ChildProcess): Promise<void> {
  child.kill('SIGCONT')
  child.stdin?.end('end\n')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
