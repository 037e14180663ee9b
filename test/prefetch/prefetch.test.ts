import type { CheckLimiter, DecisionEvent, Store } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import type { Redis } from 'ioredis'
import { afterEach, describe, expect, vi } from 'vitest'
import { AskedStores } from '../stores/store-drivers.ts'
import { patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import { it } from '../support/redis-test.ts'

let client: Redis
let store: Store
let opened = 0
const asked = new AskedStores()

it.beforeEach(({ client: own }) => {
  client = own
  opened += 1
  store = redisStore(client, { prefix: `prefetch${opened}`, heartbeatMs: 0 })
  asked.watch({ store })
})

afterEach(() => store.close?.())

// The life of a grant is long, so that none ends on a machine that stands still.
const minutely = { name: 'p', limit: 10_000, window: '10m', prefetch: '1m' } as const

/** With a policy that is prefetched, unless others are given. */
const limiterWith = (options: SomeOptions = {}) =>
  patientLimiter({ store, policies: [minutely], ...options })

/** Makes a key hot, until a grant is spent. */
async function heat(limiter: CheckLimiter, key = 'hot'): Promise<void> {
  const { spent } = limiter.storeHealth().grants
  for (let i = 0; i < 5_000 && limiter.storeHealth().grants.spent === spent; i += 1) {
    await limiter.consume(key)
  }
  expect(limiter.storeHealth().grants.spent).toBeGreaterThan(spent)
}

describe('a policy with prefetch', () => {
  it('asks the store once for many requests of a hot key', async () => {
    const limiter = limiterWith()
    await heat(limiter)
    const count = await asked.while(async () => {
      for (let i = 0; i < 200; i += 1) {
        expect((await limiter.consume('hot')).allowed).toBe(true)
      }
    })
    expect(count).toBeLessThan(20)
  })

  it('admits the limit and no more, however many ask at once', async () => {
    const limiter = limiterWith({ policies: [{ ...minutely, limit: 500 }] })
    let allowed = 0
    for (let round = 0; round < 20; round += 1) {
      const all = await Promise.all(Array.from({ length: 50 }, () => limiter.consume('hot')))
      allowed += all.filter((decision) => decision.allowed).length
    }
    expect(limiter.storeHealth().grants.spent).toBeGreaterThan(100)
    // Units of grants that wait to be returned are free for a later request.
    expect(allowed).toBeLessThanOrEqual(500)
    expect(allowed).toBeGreaterThan(450)
  })

  it('takes one grant for requests that miss one at the same time', async () => {
    const limiter = limiterWith()
    const grant = vi.spyOn(store, 'grant')
    await Promise.all(Array.from({ length: 300 }, () => limiter.consume('hot')))
    expect(grant).toHaveBeenCalledTimes(1)
  })

  it('tells what the store said at the grant, less what was spent since', async () => {
    const limiter = limiterWith()
    await heat(limiter)
    const first = (await limiter.consume('hot')).outcomes[0]
    const second = (await limiter.consume('hot')).outcomes[0]
    expect(second?.remaining).toBe((first?.remaining ?? 0) - 1)
    const peeked = (await limiter.peek('hot')).outcomes[0]
    expect(peeked?.remaining).toBe(second?.remaining)
    expect(second?.limit).toBe(10_000)
    expect(second?.resetMs).toBeGreaterThan(0)
    expect(second?.resetMs).toBeLessThanOrEqual(600_000)
  })

  it('says that a grant has answered', async () => {
    const events: DecisionEvent[] = []
    const onDecision = (event: DecisionEvent) => void events.push(event)
    const limiter = limiterWith({ observers: { onDecision } })
    await heat(limiter)
    expect(events.at(0)?.answeredBy).toBe('redis')
    expect(events.at(-1)?.answeredBy).toBe('prefetch')
  })

  it('gives a refunded unit back to its grant, once', async () => {
    const limiter = limiterWith()
    await heat(limiter)
    const decision = await limiter.consume('hot')
    const { remaining = 0 } = decision.outcomes[0] ?? {}
    expect(await limiter.refund(decision)).toBe(true)
    expect(await limiter.refund(decision)).toBe(false)
    expect((await limiter.peek('hot')).outcomes[0]?.remaining).toBe(remaining + 1)
  })

  it('forgets its grants with the key that is reset', async () => {
    const limiter = limiterWith()
    await heat(limiter)
    expect(await limiter.reset('hot')).toBe(true)
    expect((await limiterWith().peek('hot')).remaining).toBe(10_000)
  })

  it('spends no grant once the wall clock has passed its end, as after a suspension', async () => {
    const limiter = limiterWith()
    await heat(limiter)
    const { spent } = limiter.storeHealth().grants
    const { now } = Date
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 60_000)
    await limiter.consume('hot')
    clock.mockRestore()
    expect(limiter.storeHealth().grants.spent).toBe(spent)
  })
})

describe('several policies', () => {
  it('ask the store for those without a grant alone', async () => {
    const other = { name: 'q', limit: 9_000, window: '10m' } as const
    const limiter = limiterWith({ policies: [minutely, other] })
    await heat(limiter)
    const submit = vi.spyOn(store, 'submit').mockClear()
    const { outcomes } = await limiter.consume('hot')
    const asked = submit.mock.calls.map(([{ checks }]) => checks.map(({ policy }) => policy.name))
    expect(asked).toEqual([['q']])
    expect(outcomes.map(({ policy }) => policy.name)).toEqual(['p', 'q'])
  })
})
