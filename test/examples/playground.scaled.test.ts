import { gzipSync } from 'node:zlib'
import { createLimiter, type Decision, durationMs, memoryStore } from '@sluice/core'
import { type BuildOptions, build } from 'esbuild'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  type Arrival,
  algorithms,
  answerOf,
  type Lane,
  simulate,
} from '../../docs/.vitepress/playground/simulate.ts'
import { frameworks, snippet } from '../../docs/.vitepress/playground/snippets.ts'
import {
  attack,
  linkOf,
  readTraffic,
  sceneOf,
  timesText,
} from '../../docs/.vitepress/playground/traffic.ts'
import { scaled } from '../support/scale.ts'
import { root } from '../support/workspace.ts'
import { tryModules } from './page-modules.ts'

const folder = `${root}docs/.vitepress/playground/`

async function bundled(file: string, form: BuildOptions): Promise<string> {
  const { outputFiles } = await build({
    ...{ entryPoints: [folder + file], bundle: true, minify: true, write: false },
    ...{ platform: 'browser', target: 'es2022', conditions: ['@sluice/source'], ...form },
  })
  return outputFiles?.[0]?.text ?? ''
}

describe('the playground', () => {
  it('shows that a fixed window lets 7 of 4 through at its edge, and Sluice 4', async () => {
    const attacked = await readTraffic(attack.times)
    const runs = await Promise.all(attack.lanes.map((lane) => simulate(lane, attacked)))
    expect(runs).toMatchObject([
      { most: 7, allowed: 8 },
      { most: 4, allowed: 5 },
    ])
  })

  it('shows the answer to a request, and what the client should do', async () => {
    const run = await simulate({ algorithm: 'sliding-log', limit: 1, window: '10s' }, [
      { atMs: 0, key: 'a' },
      { atMs: 2_500, key: 'a' },
    ])
    if (typeof run === 'string') throw new Error(run)
    const [allowed, refused] = run.decisions.map((decision) => answerOf(decision, 0))
    expect(allowed?.text).toContain('HTTP/1.1 200 OK\nRateLimit-Policy: "default";q=1;w=10\n')
    expect(refused?.text).toMatch(/^HTTP\/1.1 429 .*\nRetry-After: 8$/s)
    expect(refused?.advice).toBe('Wait 8 s, then send it again. Earlier retries are refused too.')
  })

  it('says what is wrong with a policy', async () => {
    const lane: Lane = { algorithm: 'fixed-window', limit: 4, window: '10' }
    expect(await simulate(lane, [])).toContain('window')
    expect(await simulate({ ...lane, limit: Number.NaN, window: '1s' }, [])).toContain('limit')
  })

  it('reads times and logs, and refuses what is neither', async () => {
    expect(timesText(await readTraffic('2, 0.5x3; 1'))).toBe('0.5x3, 1, 2')
    const line = (address: string, second: number) =>
      `${address} - - [20/Nov/2026:01:06:0${second} +0000] "GET / HTTP/1.1" 200 1 "-" "-"`
    expect(await readTraffic(`${line('192.0.2.2', 5)}\n${line('192.0.2.1', 4)}`)).toEqual([
      { atMs: Date.UTC(2026, 10, 20, 1, 6, 4), key: '192.0.2.1' },
      { atMs: Date.UTC(2026, 10, 20, 1, 6, 5), key: '192.0.2.2' },
    ])
    await expect(readTraffic('1, 2x, 3')).rejects.toThrow('2x is not a time')
    await expect(readTraffic('0x100001')).rejects.toThrow('100000 requests')
    await expect(readTraffic('hello')).rejects.toThrow('none of the formats')
  })

  it('has the whole scene in its link, and handles any link', () => {
    const scene = {
      times: '0, 1.5x20',
      lanes: algorithms.slice(0, 4).map((algorithm) => ({ algorithm, limit: 7, window: '1m' })),
    }
    expect(sceneOf(`#${linkOf(scene)}`)).toEqual(scene)
    // A window goes into the code that a page shows.
    expect(sceneOf("#policy=none~1~1s&policy=%&policy=sliding-log~1~1s'})x({")).toEqual(attack)
  })

  it('is at most 60 KB for the browser, compressed, and needs nothing of Node', async () => {
    // The readers of logs come with the first log.
    const page = await bundled('playground.tsx', {
      ...{ format: 'esm', splitting: true, outdir: folder },
    })
    expect(page).not.toMatch(/from"node:|\brequire\(/)
    expect(gzipSync(page).length).toBeLessThanOrEqual(60 * 1024)
  })
})

describe('its decisions in a browser', () => {
  let inBrowser: typeof simulate
  beforeAll(async () => {
    const script = await bundled('simulate.ts', { format: 'iife', globalName: 'playground' })
    // A browser has none of these.
    const load = new Function('process', 'Buffer', 'global', `${script};return playground`)
    inBrowser = load().simulate
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it.each(algorithms)('are those of the package: %s', { timeout: 200_000 }, async (algorithm) => {
    const steps = scaled(10_000, 1_000_000) / algorithms.length
    for (let done = 0; done < steps; done += 1_000) {
      const traffic = randomTraffic(1_000)
      const limit = 1 + Math.floor(Math.random() * 12)
      const lane: Lane = { algorithm, limit, window: `${1 + Math.floor(Math.random() * 5)}s` }
      const run = await inBrowser(lane, traffic)
      if (typeof run === 'string') throw new Error(run)
      vi.useFakeTimers({ toFake: ['Date'] })
      const limiter = createLimiter({
        ...{ algorithm, limit, window: durationMs(lane.window, 'window'), store: memoryStore() },
      })
      const expected: Decision[] = []
      for (const { atMs, key } of traffic) {
        vi.setSystemTime(atMs)
        expected.push(await limiter.consume(key))
      }
      expect(run.decisions.map(numbersOf)).toEqual(expected.map(numbersOf))
      vi.useRealTimers()
    }
  })
})

const policy: Lane = { algorithm: 'fixed-window', limit: 4, window: '10s' }
const { load } = tryModules(
  frameworks.map((heading) => ({ heading, code: snippet(heading, policy) })),
)

it.each(frameworks)('the code of the playground runs: %s', async (framework) => {
  const { app, AppModule, handler, decision } = await load<Record<string, unknown>>(framework)
  expect(app ?? AppModule ?? handler ?? decision).toBeDefined()
  if (decision) expect(decision).toMatchObject({ allowed: true, limit: 4, remaining: 3 })
  expect(snippet(framework, policy)).toContain(`algorithm: 'fixed-window'`)
})

function numbersOf({ allowed, delayMs, retryAfterMs, outcomes }: Decision): string {
  const { remaining, resetMs } = outcomes[0] ?? {}
  return [allowed, delayMs, retryAfterMs, remaining, resetMs].join()
}

function randomTraffic(requests: number): readonly Arrival[] {
  let atMs = Math.floor(Math.random() * 1e12)
  return Array.from({ length: requests }, () => {
    if (Math.random() < 0.6) atMs += Math.floor(Math.random() ** 3 * 2_000)
    return { atMs, key: `client ${Math.floor(Math.random() * 4)}` }
  })
}
