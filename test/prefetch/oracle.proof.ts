import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { startTcpProxy, type TcpProxy } from '../faults/tcp-proxy.ts'
import { bundledScript } from '../support/bundled-script.ts'
import { startRedis } from '../support/redis-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { fullestWindow, readTold } from './witness.ts'

const seconds = Number(process.env.PREFETCH_SECONDS ?? 12)
const processes = Number(process.env.PREFETCH_PROCESSES ?? 4)
const seed = Number(process.env.PREFETCH_SEED ?? Math.floor(Math.random() * 1_000_000))
const script = await bundledScript(new URL('oracle-worker.ts', import.meta.url))
const limit = 300
const windowMs = 2_000

let draws = seed

function random(): number {
  draws = (draws * 1_103_515_245 + 12_345) % 2 ** 31
  return draws / 2 ** 31
}

/** With `maxUncounted` of 0, the processes take grants. */
const kinds = [
  { name: 'with grants', maxUncounted: 0, seconds },
  { name: 'that decide before the count', maxUncounted: 30, seconds: seconds / 2 },
]

describe.each(kinds)(`${processes} processes $name, and faults of all kinds`, (kind) => {
  const { maxUncounted } = kind

  it(`keep their bound in any rolling window (seed ${seed})`, {
    timeout: (seconds + 60) * 1_000,
  }, async () => {
    let kills = 0
    using folder = temporaryFolder('prefetch')
    const redis = await startRedis()
    const proxies = await Promise.all(
      Array.from({ length: processes }, () => startTcpProxy(redis.port)),
    )
    const files: string[] = []
    const fleet = proxies.map((proxy) => start(proxy))

    function start(proxy: TcpProxy): ChildProcess {
      const file = join(folder.path, `${files.length}.txt`)
      files.push(file)
      const url = `redis://127.0.0.1:${proxy.port}`
      const own = [url, file, files.length + seed, limit, windowMs, maxUncounted].map(String)
      return spawn(process.execPath, [script, ...own], { stdio: ['pipe', 'pipe', 'inherit'] })
    }

    async function fault(): Promise<void> {
      const index = Math.floor(random() * processes)
      const [child, proxy] = [fleet[index], proxies[index]]
      if (!child || !proxy) return
      const kind = Math.floor(random() * 6)
      if (kind === 0) {
        child.kill('SIGKILL')
        kills += 1
        fleet[index] = start(proxy)
      } else if (kind === 1) {
        child.kill('SIGSTOP')
        await sleep(random() * 600)
        child.kill('SIGCONT')
      } else if (kind === 2) {
        proxy.disturb({ requestDelayMs: random() * 300 })
      } else if (kind === 3) {
        proxy.disturb({ replyDelayMs: random() * 300, stall: { every: 7, forMs: 400 } })
      } else if (kind === 4) {
        proxy.disturb({ cutEvery: 20 })
      } else {
        await proxy.refuse()
        await sleep(random() * 500)
        await proxy.accept()
      }
      await sleep(random() * 500)
      proxy.disturb({})
    }

    await Promise.all(fleet.map((child) => child.stdout && once(child.stdout, 'data')))
    const endsAt = performance.now() + kind.seconds * 1_000
    while (performance.now() < endsAt) {
      await sleep(random() * 600)
      await fault()
    }
    await Promise.all(fleet.map(end))
    await Promise.all(proxies.map((proxy) => proxy.close()))
    await redis.stop()

    // A process that was killed takes its units with it.
    const over = maxUncounted * (processes + kills)
    const told = readTold(files.map(readIfThere))
    for (const key of ['plain', 'changing', 'refunded', 'reset']) {
      const most = fullestWindow(told, key, windowMs)
      expect({ key, most, isOver: most > limit + over }).toEqual({ key, most, isOver: false })
      expect(most).toBeGreaterThan(0)
    }
    // A lowered limit binds once the grants have ended, and the processes that were stopped have gone on.
    const low = told.admissions.filter(({ key, atMs }) => {
      const inPhase = atMs % (3 * windowMs)
      return key === 'changing' && inPhase > 1_500 && Math.floor(atMs / (3 * windowMs)) % 2 === 1
    })
    expect(
      fullestWindow({ admissions: low, resets: [] }, 'changing', windowMs),
    ).toBeLessThanOrEqual(limit / 2 + over)
    if (maxUncounted > 0) return
    // Those that were not killed have told what they spent.
    const spent = files.flatMap(
      (file) => /^grants all \d+ (\d+)$/m.exec(readIfThere(file))?.[1] ?? [],
    )
    expect(spent.reduce((sum, each) => sum + Number(each), 0)).toBeGreaterThan(0)
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
