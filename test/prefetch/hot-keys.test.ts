import { memoryStore } from '@sluice/core'
import { describe, expect, it, vi } from 'vitest'
import { beginEach } from '../core/resilience/troubled-store.ts'
import { storeThrough } from '../support/store-through.ts'
import { consume, consumeFor, GrantingStore } from './granting-store.ts'

const policy = { name: 'p', limit: 10_000, window: '10s', prefetch: '500ms' } as const
let store: GrantingStore

beginEach(() => {
  store = new GrantingStore()
})

describe('a limit that changes', () => {
  it('is the limit of the next grants, however hot the key stays', async () => {
    const limiter = store.limiter({ policies: [policy] })
    await consumeFor(limiter, { ms: 2_000, everyMs: 4 })
    expect(limiter.storeHealth().grants.spent).toBeGreaterThan(100)
    await consumeFor(limiter, { ms: 11_000, everyMs: 4, limit: 150 })
    const asked = store.calls.length
    const allowed = await consumeFor(limiter, { ms: 20_000, everyMs: 4, limit: 150 })
    expect(allowed).toBeGreaterThan(270)
    expect(allowed).toBeLessThanOrEqual(450)
    const limits = store.calls.slice(asked).map(({ checks }) => checks[0]?.limit)
    expect(new Set(limits)).toEqual(new Set([150]))
  })

  it('lets no grant be spent that was asked for under another one', async () => {
    const limiter = store.limiter({ policies: [policy] })
    store.moods.grant = 'hangs'
    await consumeFor(limiter, { ms: 200, everyMs: 4 })
    expect(store.of('grant')).toHaveLength(1)
    await consume(limiter, { limit: 200 })
    await store.release()
    await consume(limiter, { limit: 200 })
    await consume(limiter)
    expect(limiter.storeHealth().grants.spent).toBe(0)
  })

  it('asks for few grants while two limits take turns', async () => {
    const limiter = store.limiter({ policies: [policy] })
    for (let i = 0; i < 500; i += 1) {
      await consume(limiter, { limit: i % 2 === 0 ? 10_000 : 5_000 })
      await vi.advanceTimersByTimeAsync(4)
    }
    const wanted = store.of('grant').filter(({ cost }) => cost > 0)
    expect(wanted.length).toBeLessThanOrEqual(10)
    expect(limiter.storeHealth().grants.spent).toBeLessThan(20)
  })
})

describe('requests that cost more than a unit', () => {
  it('are few, so they are no reason for a grant', async () => {
    const limiter = store.limiter({ policies: [{ ...policy, prefetch: '100ms' }] })
    for (let i = 0; i < 8; i += 1) {
      expect((await consume(limiter, { cost: 1_000 })).allowed).toBe(true)
      await vi.advanceTimersByTimeAsync(700)
    }
    expect(store.calls.map(({ op }) => op)).toEqual(Array(8).fill('consume'))
  })

  it('are asked about before the grant that they are a reason for', async () => {
    const limiter = store.limiter({ policies: [policy] })
    for (let i = 0; store.of('grant').length === 0 && i < 50; i += 1) {
      expect((await consume(limiter, { cost: 20 })).allowed).toBe(true)
    }
    expect(store.calls.slice(-2).map(({ op }) => op)).toEqual(['consume', 'grant'])
    expect(store.of('grant')[0]?.cost).toBeGreaterThanOrEqual(200)
  })

  it('get no grant when the limit is too small for one', async () => {
    const limiter = store.limiter({ policies: [{ ...policy, limit: 100 }] })
    for (let i = 0; i < 100; i += 1) {
      await consume(limiter, { cost: 60 })
      await vi.advanceTimersByTimeAsync(5)
    }
    expect(store.of('grant')).toEqual([])
  })

  it('are not denied for a rest of a grant that is too small for them', async () => {
    const limiter = store.limiter({ policies: [{ ...policy, limit: 1_000 }] })
    let allowed = 0
    for (let i = 0; i < 80; i += 1) {
      if ((await consume(limiter, { cost: 40 })).allowed) allowed += 1
      await vi.advanceTimersByTimeAsync(5)
    }
    expect(limiter.storeHealth().grants.spent).toBeGreaterThan(0)
    expect(allowed).toBe(25)
  })
})

describe('a policy without hot keys', () => {
  it('finds one while another policy has some', async () => {
    const policies = [policy, { ...policy, name: 'q' }]
    const [busy, other] = policies.map((each) => store.limiter({ policies: [each] }))
    if (!busy || !other) throw new Error('no limiters')
    for (let i = 0; i < 500; i += 1) {
      await consume(busy)
      if (i % 2 === 0) await consume(other)
      await vi.advanceTimersByTimeAsync(8)
    }
    expect(store.of('grant').some((check) => check.policy.name === 'q')).toBe(true)
  })

  it('is swept as often as its life asks for, after one with a long life', async () => {
    const long = store.limiter({ policies: [{ ...policy, window: '10m', prefetch: '1m' }] })
    const short = store.limiter({ policies: [{ ...policy, name: 'q' }] })
    await consumeFor(long, { ms: 100, everyMs: 4 })
    await consumeFor(short, { ms: 200, everyMs: 4 })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(short.storeHealth().grants.lapsed).toBe(0)
    expect(short.storeHealth().grants.returned).toBeGreaterThan(0)
  })
})

describe('a key that nobody asks for any more', () => {
  it('is held for little more than the life of a grant', async () => {
    const limiter = store.limiter({ policies: [policy] })
    await consumeFor(limiter, { ms: 2_000, everyMs: 4 })
    await vi.advanceTimersByTimeAsync(625)
    const asked = store.calls.length
    await vi.advanceTimersByTimeAsync(3_000)
    expect(store.calls).toHaveLength(asked)
    const { taken, spent, returned, lapsed } = limiter.storeHealth().grants
    expect({ lapsed, returned }).toEqual({ lapsed: 0, returned: taken - spent })
  })
})

describe('while the store is away', () => {
  it('grants are spent until their end, and are no debts', async () => {
    const limiter = store.limiter({ policies: [policy] })
    for (let i = 0; i < 30; i += 1) await consume(limiter)
    await vi.advanceTimersByTimeAsync(350)
    store.mood = 'rejects'
    for (let i = 0; i < 50 && !limiter.storeHealth().isAway; i += 1) await limiter.consume('cold')
    expect(limiter.storeHealth().isAway).toBe(true)
    const { grants, keysOwed } = limiter.storeHealth()
    // More than seven eighths of the life have passed.
    await vi.advanceTimersByTimeAsync(120)
    expect((await consume(limiter)).source).toBe('store')
    expect(limiter.storeHealth()).toMatchObject({ grants: { spent: grants.spent + 1 }, keysOwed })
  })
})

describe('a store that answers at once', () => {
  it('decides each request while it throws for grants, and is asked for one again later', async () => {
    let isBroken = true
    const atOnce = storeThrough(memoryStore(), (op) => {
      if (op === 'grant' && isBroken) throw new Error('down')
    })
    const limiter = store.limiter({ policies: [policy], store: atOnce })
    for (let i = 0; i < 30; i += 1) expect((await consume(limiter)).source).toBe('store')
    expect(limiter.storeHealth().grants.taken).toBe(0)
    isBroken = false
    await vi.advanceTimersByTimeAsync(500)
    for (let i = 0; i < 30; i += 1) await consume(limiter)
    expect(limiter.storeHealth().grants.spent).toBeGreaterThan(0)
  })
})

describe('a denial that is remembered', () => {
  it('outlasts a request for a grant that returns nothing', async () => {
    store.denials = { ttlMs: 60_000 }
    const limiter = store.limiter({ policies: [policy] })
    store.moods.consume = 'hangs'
    const denied = consume(limiter, { cost: 10_001 })
    await store.release()
    expect((await denied).allowed).toBe(false)
    store.moods.consume = 'answers'
    for (let i = 0; i < 30 && store.of('grant').length === 0; i += 1) await consume(limiter)
    expect(store.of('grant')).toHaveLength(1)
    const asked = store.of('consume').length
    expect((await consume(limiter, { cost: 10_001 })).allowed).toBe(false)
    expect(store.of('consume')).toHaveLength(asked)
  })
})

describe('the end of a limiter with many hot keys', () => {
  const count = 250

  async function withHotKeys() {
    const limiter = store.limiter({ policies: [{ ...policy, limit: 100_000 }] })
    for (let i = 0; i < 25; i += 1) {
      await Promise.all(Array.from({ length: count }, (_, key) => limiter.consume(`k${key}`)))
    }
    expect(limiter.storeHealth().hotKeys).toBe(count)
    store.moods.grant = 'hangs'
    store.calls.length = 0
    return limiter
  }

  it('returns the grants of some keys at a time', async () => {
    const limiter = await withHotKeys()
    const closing = limiter.close()
    const asked = [store.of('grant').length]
    for (let i = 0; i < 2; i += 1) {
      await store.release()
      asked.push(store.of('grant').length)
    }
    expect(asked).toEqual([100, 200, count])
    await closing
    const { grants } = limiter.storeHealth()
    await store.release()
    expect(grants.spent).toBeGreaterThan(0)
    expect(store.of('grant').every(({ cost }) => cost === 0)).toBe(true)
  })

  it('waits two seconds at most for a store that does not answer', async () => {
    const limiter = await withHotKeys()
    const closing = limiter.close()
    await vi.advanceTimersByTimeAsync(2_000)
    await closing
    expect(store.of('grant')).toHaveLength(100)
  })
})
