import { definePolicy, memoryStore } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { describe, expect } from 'vitest'
import { Scripts } from '../../packages/redis/src/scripts/scripts.ts'
import { usualOf } from '../../packages/redis/src/scripts/usual-states.ts'
import { limiterOf, patientLimiter } from '../support/patient-limiter.ts'
import { it } from '../support/redis-test.ts'

const hot = { name: 'p', limit: 1_000, window: '1m', prefetch: '1s' } as const

describe('the option prefetch', () => {
  it.each([
    [
      { prefetch: '7s' } as const,
      /^prefetch must be 10 ms to a tenth of the window \(6000 ms\), but is '7s'/,
    ],
    [{ prefetch: '5ms' } as const, /^prefetch must be 10 ms to a tenth of the window/],
    [{ prefetch: 0 as never }, /^prefetch must be whole milliseconds ≥ 1/],
    [
      { window: '50ms', prefetch: '5ms' } as const,
      /^prefetch must be left out with a window below 100 ms/,
    ],
    [{ countDenied: true }, /^prefetch must be left out beside countDenied/],
    [
      { algorithm: 'fixed-window' } as const,
      /left out with algorithm 'fixed-window': only 'sliding-log'/,
    ],
    [
      { algorithm: 'concurrency', window: undefined } as const,
      /left out with algorithm 'concurrency'/,
    ],
  ])('is refused as %o', (own, message) => {
    expect(() => limiterOf({ ...hot, ...own })).toThrow(message)
  })

  it('is refused on a store that grants no units', () => {
    const store = { apply: () => [], change: () => [] }
    expect(() => limiterOf({ ...hot, store })).toThrow(
      /^prefetch of 'p' must be left out on this store, which grants no units/,
    )
  })

  it('changes nothing in memory, where no call is spared', async () => {
    const limiter = limiterOf({ ...hot, limit: 30, store: memoryStore() })
    for (let i = 0; i < 50; i += 1) expect((await limiter.consume('k')).allowed).toBe(i < 30)
    expect(limiter.storeHealth().grants.taken).toBe(0)
  })

  it('is in both or in none of two policies of one name', () => {
    const store = memoryStore()
    limiterOf({ ...hot, store })
    const other = () => limiterOf({ ...hot, prefetch: undefined, store })
    expect(other).toThrow(/the name 'p' is one quota .* with prefetch and as/)
  })
})

describe('policies without prefetch', () => {
  it('have scripts in which nothing knows of grants', () => {
    const scripts = new Scripts('packed')
    const policy = definePolicy({ name: 'plain', limit: 9, window: '1m' }, '')
    const settings = { encoding: 'packed', isServerClock: true } as const
    const log = usualOf({ policy, key: 'k', cost: 1, limit: 9 }, settings)
    if (!log) throw new Error('no usual states')
    const all = [scripts.general, scripts.usual([log]), scripts.usual([log, log])]
    for (const script of all) expect(script?.text).not.toMatch(/grants_key|held_log|terms/)
    expect(scripts.granting.text).toContain('granted-log')
  })

  it('leave the same bytes whether or not another policy of the store has it', async ({
    client,
  }) => {
    const stored: string[][] = []
    for (const policies of [
      [{ name: 'plain', limit: 1_000, window: '1m' }],
      [{ name: 'plain', limit: 1_000, window: '1m' }, hot],
    ] as const) {
      await client.flushall()
      const store = redisStore(client, { heartbeatMs: 0, clock: () => 1_795_195_800_000 })
      const limiter = patientLimiter({ policies: policies.slice(0, 1), store })
      if (policies.length > 1) await patientLimiter({ policies: [hot], store }).consume('other')
      for (let i = 0; i < 100; i += 1) await limiter.consume('k')
      const keys = (await client.keys('*:plain~*')).sort()
      stored.push(
        await Promise.all(keys.map(async (key) => `${key} ${await client.lrange(key, 0, -1)}`)),
      )
      await store.close()
    }
    expect(stored[0]).toHaveLength(1)
    expect(stored[1]).toEqual(stored[0])
  })
})
