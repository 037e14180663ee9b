import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLimiter, memoryStore } from '@sluice/core'
import { collectMetrics } from '@sluice/metrics'
import { expect, it } from 'vitest'
import { scraped } from './scrape.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** The CPU time (ms) of this process that a piece of work takes, at best of several times. */
async function bestCpuMs(times: number, work: () => unknown): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < times; i += 1) {
    const before = process.cpuUsage()
    await work()
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / 1_000)
  }
  return best
}

/** The decision of a request, without the cost of coming to it. */
async function decided() {
  const limiter = createLimiter({ name: 'api', limit: 1e9, window: '1m', store: memoryStore() })
  const [policy] = limiter.policies
  if (!policy) throw new Error('no policy')
  const decision = await limiter.consume('a')
  const atMs = performance.now()
  return (key: string) => ({
    decision,
    checks: [{ policy, key, cost: 1, limit: 1e9 }],
    ...{ request: undefined, route: 'GET /items', method: 'GET', policy, key, digest: undefined },
    ...{ answeredBy: 'memory', atMs, durationMs: 0.01, isQueued: false },
  })
}

async function heapBytes(): Promise<number> {
  for (let i = 0; i < 3; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10))
    collectGarbage()
  }
  return process.memoryUsage().heapUsed
}

it('a scrape of 2,000 series and 100 policies takes at most 10 ms', async () => {
  const metrics = collectMetrics()
  for (let p = 0; p < 100; p += 1) {
    const options = { name: `policy-${p}`, limit: 1, window: '1h', observers: [metrics] } as const
    const limiter = createLimiter(options)
    for (let i = 0; i < 1_200; i += 1) await limiter.consume(`user-${i}`)
    await limiter.consume('user-1')
    for (let route = 0; route < 12; route += 1)
      metrics.onEvent({ type: 'done', queue: `${p}-${route}` })
  }
  expect((await metrics.read()).flatMap(({ samples }) => samples).length).toBeGreaterThan(2_000)
  const ms = await bestCpuMs(30, () => scraped(metrics))
  console.info(`scrape: ${ms.toFixed(2)} ms`)
  expect(ms).toBeLessThanOrEqual(10)
})

it('10,000,000 identities take less than 5 MB', async () => {
  const metrics = collectMetrics()
  const eventOf = await decided()
  for (let i = 0; i < 10_000; i += 1) metrics.onDecision(eventOf(`user-${i}`))
  const before = await heapBytes()
  for (let i = 0; i < 10_000_000; i += 1) metrics.onDecision(eventOf(`identity-${i}`))
  const grown = (await heapBytes()) - before
  console.info(`memory: ${(grown / 1e6).toFixed(2)} MB`)
  expect(grown).toBeLessThan(5e6)
  expect(metrics.topKeys({ policy: 'api', window: '1h' })?.total).toBe(10_010_000)
}, 120_000)
