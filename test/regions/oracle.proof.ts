import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { startTcpProxy, type TcpProxy } from '../faults/tcp-proxy.ts'
import { fullestWindow, readTold } from '../prefetch/witness.ts'
import { startRedis } from '../support/redis-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const seconds = Number(process.env.REGIONS_SECONDS ?? 5)
const regions = Number(process.env.REGIONS ?? 4)
const processes = 2 * regions
const seed = Number(process.env.REGIONS_SEED ?? Math.floor(Math.random() * 1_000_000))
const limit = 300
const windowMs = 2_000

let draws = seed

function random(): number {
  draws = (draws * 1_103_515_245 + 12_345) % 2 ** 31
  return draws / 2 ** 31
}

describe(`${regions} regions of two processes, and faults of all kinds`, () => {
  it(`admit the limit in no rolling window, all together (seed ${seed})`, {
    timeout: (seconds + 90) * 1_000,
  }, async () => {
    using folder = temporaryFolder('regions')
    const global = await startRedis()
    const locals = await Promise.all(Array.from({ length: regions }, () => startRedis()))
    const proxies = await Promise.all(
      Array.from({ length: processes }, () => startTcpProxy(global.port)),
    )
    const files: string[] = []
    const fleet = proxies.map(start)

    function start(proxy: TcpProxy, index: number): ChildProcess {
      const file = join(folder.path, `${files.length}.txt`)
      files.push(file)
      const script = fileURLToPath(new URL('oracle-worker.ts', import.meta.url))
      const region = index % regions
      const own = [`r${region}`, locals[region]?.url, `redis://127.0.0.1:${proxy.port}`, file]
      const numbers = [files.length + seed, limit, windowMs, regions]
      return spawn(
        process.execPath,
        [
          '--conditions=@sluice/source',
          '--import',
          'tsx',
          script,
          ...[...own, ...numbers].map(String),
        ],
        { stdio: ['pipe', 'pipe', 'inherit'] },
      )
    }

    const faults: readonly ((index: number, proxy: TcpProxy) => unknown)[] = [
      (index, proxy) => {
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
        const cut = proxies.filter((_, other) => other % regions === index % regions)
        await Promise.all(cut.map((proxy) => proxy.refuse()))
        await sleep(random() * 1_000)
        await Promise.all(cut.map((proxy) => proxy.accept()))
      },
      async () => {
        global.pause()
        await sleep(random() * 400)
        global.resume()
      },
    ]

    await Promise.all(fleet.map((child) => child.stdout && once(child.stdout, 'data')))
    const endsAt = performance.now() + seconds * 1_000
    while (performance.now() < endsAt) {
      await sleep(random() * 400)
      const index = Math.floor(random() * processes)
      const proxy = proxies[index]
      if (!proxy) continue
      await faults[Math.floor(random() * faults.length)]?.(index, proxy)
      await sleep(random() * 400)
      proxy.disturb({})
    }
    await Promise.all(fleet.map(end))
    await Promise.all(proxies.map((proxy) => proxy.close()))
    await Promise.all([global, ...locals].map((server) => server.stop()))

    const told = readTold(files.map(readIfThere))
    for (const key of ['plain', 'changing', 'refunded', 'hot', 'central']) {
      const most = fullestWindow(told, key, windowMs)
      expect({ key, most, isOver: most > limit }).toEqual({ key, most, isOver: false })
      expect(most).toBeGreaterThan(0)
    }
    // A window is fuller than the share of one region.
    expect(fullestWindow(told, 'plain', windowMs)).toBeGreaterThan((0.6 / regions) * limit)
    const counts = files.flatMap((file) => [
      ...readIfThere(file).matchAll(/^region \S+ (\d+) (\d+)$/gm),
    ])
    const borrowed = counts.reduce((sum, [, , units]) => sum + Number(units), 0)
    expect(borrowed).toBeGreaterThan(0)
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
