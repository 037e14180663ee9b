import { createCheckLimiter, digestOf, type StoreFleet } from '@sluice/core'
import { collectMetrics } from '@sluice/metrics'
import { type RedisStore, redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { fakeTime } from '../support/fake-time.ts'
import { patientLimiter } from '../support/patient-limiter.ts'
import { redisOfFile } from '../support/redis-test.ts'
import { until } from '../support/until.ts'

const { redis: server } = await redisOfFile()

// Processes report every three seconds: the clock of this process runs ahead while a test waits.
fakeTime(['setTimeout', 'clearTimeout', 'performance'])

/** Waits as `until` does, while seconds pass for the processes of the fleet. */
function soon(what: string, condition: () => boolean): Promise<void> {
  return until(what, async () => {
    await vi.advanceTimersByTimeAsync(200)
    return condition()
  })
}

/** A process of a fleet, as far as top keys know: a client, a store and metrics of its own. */
function join(prefix: string, reveal?: (key: string) => string) {
  const client = new Redis(server.url)
  const store: RedisStore = redisStore(client, { prefix, secret: 's' })
  const metrics = collectMetrics({ store, ...(reveal ? { reveal } : {}) })
  onTestFinished(async () => {
    metrics.close()
    await store.close()
    client.disconnect()
  })
  const limit = { name: 'api', limit: 5, window: '1h' } as const
  return { store, metrics, limiter: patientLimiter({ ...limit, store, observers: [metrics] }) }
}

describe('topKeys over a fleet', () => {
  it('merges what all processes counted, by digests, and reveals what this one has seen', async () => {
    const [one, two] = [join('f1', (key) => key.toUpperCase()), join('f1')]
    for (let i = 0; i < 4; i += 1) await one.limiter.consume('shared')
    for (let i = 0; i < 4; i += 1) await two.limiter.consume('shared')
    await two.limiter.consume('elsewhere', { cost: 3 })
    const idle = join('f1')
    await soon('the fleet is known', () => {
      const answer = one.metrics.topKeys({ policy: 'api' })
      return answer?.processes === 3 && answer.total === 9
    })
    const digest = (key: string) => digestOf(key, one.store)
    const merged = one.metrics.topKeys({ policy: 'api' })
    expect(merged).toMatchObject({ scope: 'fleet', processes: 3, total: 9, floor: 0 })
    expect(merged?.keys).toEqual([
      { digest: digest('shared'), name: 'SHARED', count: 8, error: 0 },
      { digest: digest('elsewhere'), name: undefined, count: 1, error: 0 },
    ])
    const counts = (by: 'denied' | 'cost') =>
      one.metrics.topKeys({ policy: 'api', by, window: '1h' })?.keys.map(({ count }) => count)
    expect([counts('denied'), counts('cost')]).toEqual([[3], [8, 3]])
    await soon('one without requests knows too', () => {
      return idle.metrics.topKeys({ policy: 'api' })?.total === 9
    })
    expect(idle.metrics.topKeys({ policy: 'none' })).toBeUndefined()

    const key = String(await server.cli('KEYS', 'f1:*metrics'))
    const text = JSON.stringify(await server.cli('HGETALL', key))
    expect(text).toContain(digest('shared'))
    expect(text).not.toMatch(/shared|elsewhere/)
    expect(Number(await server.cli('PTTL', key))).toBeGreaterThan(0)
  })

  it('reports only this process while Redis is unavailable', async () => {
    const { metrics, limiter } = join('f2')
    expect(metrics.topKeys({ policy: 'api' })).toMatchObject({ scope: 'process', processes: 1 })
    await limiter.consume('a')
    await soon('the fleet is known', () => metrics.topKeys({ policy: 'api' })?.scope === 'fleet')
    server.pause()
    vi.advanceTimersByTime(15_000)
    const answer = metrics.topKeys({ policy: 'api' })
    server.resume()
    expect(answer).toMatchObject({ scope: 'process', processes: 1, total: 1 })
  })

  it('ends its exchange on close, and keeps counting', async () => {
    const { metrics, limiter, store } = join('f4')
    await soon('the fleet is known', () => metrics.topKeys({ policy: 'api' })?.scope === 'fleet')
    metrics.close()
    metrics.close()
    const share = vi.spyOn(store.fleet as Required<StoreFleet>, 'shareReport')
    await limiter.consume('a')
    expect(metrics.topKeys({ policy: 'api' })).toMatchObject({ scope: 'process', total: 1 })
    await vi.advanceTimersByTimeAsync(10_000)
    expect(share).not.toHaveBeenCalled()
  })

  it('uses bounded space for any number of policies and keys', async () => {
    const { metrics, store } = join('f3')
    const options = { limit: 1, window: '1h' } as const
    for (let policy = 0; policy < 100; policy += 1) {
      const name = `policy-${policy}`
      const limiter = createCheckLimiter({ ...options, name, observers: [metrics] })
      for (let i = 0; i < 50; i += 1) void limiter.consume(`user-${policy}-${i}`)
    }
    const tiered = createCheckLimiter({ ...options, name: 'x'.repeat(256), store }, [true])
    for (let i = 0; i < 600; i += 1) {
      const checks = tiered.policies.map((policy) => ({ policy, key: `${i}`, cost: 1, limit: 7 }))
      void tiered.decide(checks)
    }
    await soon('it was told', () => {
      return metrics.topKeys({ policy: 'policy-1' })?.scope === 'fleet'
    })
    const key = String(await server.cli('KEYS', 'f3:*metrics'))
    const size = JSON.stringify(await server.cli('HVALS', key)).length
    expect(size).toBeGreaterThan(10_000)
    expect(size).toBeLessThan(65_536)
  })
})
