import { type CheckLimiter, memoryStore } from '@sluice/core'
import { describe, expect, it, vi } from 'vitest'
import { beginEach } from '../core/resilience/troubled-store.ts'
import { checkOf } from '../support/patient-limiter.ts'
import { storeThrough } from '../support/store-through.ts'
import { consume, consumeFor, GrantingStore } from './granting-store.ts'

const policy = { name: 'p', limit: 10_000, window: '10s', prefetch: '500ms' } as const
let store: GrantingStore

beginEach(() => {
  store = new GrantingStore()
})

/** Consumes one unit so many times, at one moment. */
async function burst(limiter: CheckLimiter, times: number, cost = 1): Promise<void> {
  for (let i = 0; i < times; i += 1) await consume(limiter, { cost })
}

describe('a key', () => {
  // A grant lives for half a second, so 20 requests of a second are what it has to be worth.
  it.each<[string, hotKeys: number, ask: (limiter: CheckLimiter) => Promise<unknown>]>([
    ['19 requests', 0, (limiter) => burst(limiter, 19)],
    ['20 requests', 1, (limiter) => burst(limiter, 20)],
    ['20 requests within a second', 1, (limiter) => inTwoParts(limiter, 999)],
    ['20 requests within more than a second', 0, (limiter) => inTwoParts(limiter, 1_000)],
    ['20 requests that a sweep comes between', 1, (limiter) => inTwoParts(limiter, 200, 1_900)],
    ['30 requests of cost 0', 0, (limiter) => burst(limiter, 30, 0)],
    ['30 charges', 0, (limiter) => repeat(30, () => limiter.charge('k'))],
    ['30 peeks', 0, (limiter) => repeat(30, () => limiter.peek('k'))],
  ])('that gets %s makes %i keys hot', async (_, hotKeys, ask) => {
    const limiter = store.limiter({ policies: [policy] })
    await ask(limiter)
    expect(limiter.storeHealth().hotKeys).toBe(hotKeys)
    expect(store.of('grant').map(({ cost }) => cost)).toEqual(Array(hotKeys).fill(10))
  })

  async function repeat(times: number, ask: () => Promise<unknown>): Promise<void> {
    for (let i = 0; i < times; i += 1) await ask()
  }

  async function inTwoParts(limiter: CheckLimiter, ms: number, startMs = 0): Promise<void> {
    await limiter.consume('another')
    await vi.advanceTimersByTimeAsync(startMs)
    await burst(limiter, 10)
    await vi.advanceTimersByTimeAsync(ms)
    await burst(limiter, 10)
  }

  it('stays hot while units are held or being returned, then leaves no timer', async () => {
    const slow = { ...policy, window: '1m', prefetch: '4s' } as const
    const limiter = store.limiter({ policies: [slow], deadlineMs: 100 })
    await burst(limiter, 20)
    store.moods.grant = 'hangs'
    for (const ms of [2_500, 1_100]) {
      await vi.advanceTimersByTimeAsync(ms)
      expect(limiter.storeHealth().hotKeys).toBe(1)
    }
    expect(store.of('grant').at(-1)).toMatchObject({ cost: 0, terms: { closed: [{ spent: 10 }] } })
    // Requests that cost nothing keep no key hot.
    await burst(limiter, 30, 0)
    store.moods.grant = 'answers'
    await store.release()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(limiter.storeHealth()).toMatchObject({ hotKeys: 0, grants: { returned: 30, lapsed: 0 } })
    await vi.advanceTimersByTimeAsync(4_000)
    expect(vi.getTimerCount()).toBe(0)
  })
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

  it('closes the grants of the last one, and asks for others half of a life later', async () => {
    const limiter = store.limiter({ policies: [policy] })
    await burst(limiter, 20)
    const asked = store.of('grant').length
    for (const [ms, grants] of [
      [0, asked],
      [240, asked],
      [10, asked + 1],
    ] as const) {
      await vi.advanceTimersByTimeAsync(ms)
      for (let i = 0; i < 5; i += 1) await consume(limiter, { limit: 5_000 })
      expect(store.of('grant').filter(({ cost }) => cost > 0)).toHaveLength(grants)
    }
    expect(limiter.storeHealth().grants.spent).toBe(4)
  })

  it('never spends a grant requested under another limit', async () => {
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

  it('are checked before the grant that they cause', async () => {
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

  it('is swept as often as its lifetime requires, after one with a long lifetime', async () => {
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
    await consumeFor(limiter, { ms: 2_500, everyMs: 4 })
    // The life of a grant spends 125 units, and half of them are left when the next ones are taken.
    const most = Math.max(...store.of('grant').map(({ cost }) => cost))
    expect(Math.abs(most - 63)).toBeLessThan(3)
    await vi.advanceTimersByTimeAsync(625)
    const asked = store.calls.length
    await vi.advanceTimersByTimeAsync(3_000)
    expect(store.calls).toHaveLength(asked)
    const { taken, spent, returned, lapsed } = limiter.storeHealth().grants
    expect({ lapsed, returned }).toEqual({ lapsed: 0, returned: taken - spent })
  })
})

describe('a grant that ends soon', () => {
  it.each([
    ['asks for the next one', 'was spent lately', 350, [10, 10]],
    ['asks for no other one', 'was not', 250, [10, 0, 10]],
  ] as const)('%s if it %s', async (_, __, spentAtMs, costs) => {
    const limiter = store.limiter({ policies: [policy] })
    await burst(limiter, 20)
    await vi.advanceTimersByTimeAsync(spentAtMs)
    expect((await consume(limiter)).outcomes[0]).toMatchObject({ remaining: 9_979 })
    await vi.advanceTimersByTimeAsync(460 - spentAtMs)
    // The key is still hot: the next request asks at once where nothing is held.
    await consume(limiter)
    expect(store.of('grant').map(({ cost }) => cost)).toEqual(costs)
    expect(store.of('grant')[1]?.terms?.closed).toMatchObject([{ spent: 1 }])
  })
})

describe('a store that has few units left', () => {
  // The limit, less 20 units, by 2: what one of two processes gets.
  it.each([
    [30, 'asked again once half of a grant is spent', [10, 6]],
    [28, 'left alone for half of the life of a grant', [10]],
  ] as const)('with a limit of %i is %s', async (limit, _, costs) => {
    const limiter = store.limiter({ policies: [{ ...policy, limit }] })
    await burst(limiter, 23)
    expect(store.of('grant').map(({ cost }) => cost)).toEqual(costs)
    await vi.advanceTimersByTimeAsync(250)
    await burst(limiter, 1)
    expect(store.of('grant').length).toBeGreaterThan(1)
  })

  it.each([
    [undefined, 1, 500],
    [4, 1, 125],
    [undefined, 3, 166],
  ])(
    'grants a part of them: with instances %s of a fleet of %i',
    async (instances, fleet, units) => {
      store.fleet = { instances: fleet }
      const big = { ...policy, limit: 1_200 }
      const limiter = store.limiter({ policies: [big], instances })
      await burst(limiter, 20, 10)
      expect(store.of('grant')).toMatchObject([
        { cost: 100, terms: { divisor: 2 * (instances ?? fleet) } },
      ])
      expect(limiter.storeHealth().grants.taken).toBe(Math.min(100, units))
    },
  )

  it('gets a grant back at once that is too small for a request', async () => {
    const limiter = store.limiter({ policies: [{ ...policy, limit: 1_080 }] })
    await burst(limiter, 20, 50)
    const [asked, returned, ...others] = store.of('grant')
    expect(asked).toMatchObject({ cost: 500, limit: 1_080 })
    expect(returned).toMatchObject({ cost: 0, terms: { closed: [{ id: asked?.terms?.id }] } })
    expect(limiter.storeHealth().grants).toEqual({ taken: 40, spent: 0, returned: 40, lapsed: 0 })
    expect(others).toEqual([])
  })
})

describe('two policies with grants', () => {
  const both = [policy, { ...policy, name: 'q', limit: 9_000 }]

  it('call the store for neither, and show the remaining units of each', async () => {
    const limiter = store.limiter({ policies: both })
    for (let i = 0; i < 20; i += 1) await limiter.consume('k')
    const asked = store.calls.length
    const decision = await limiter.consume('k')
    expect(decision).toMatchObject({
      ...{ allowed: true, source: 'store', limit: 9_000, remaining: 8_979 },
      outcomes: [{ remaining: 9_979 }, { remaining: 8_979 }],
    })
    expect((await limiter.peek('k')).outcomes).toMatchObject(
      decision.outcomes.map(({ remaining }) => ({ remaining })),
    )
    expect(store.calls).toHaveLength(asked)
    // A reset of the one leaves the grants of the other.
    await store.limiter({ policies: both.slice(1) }).reset('k')
    expect(store.of('reset')).toMatchObject([{ policy: { name: 'q' }, closed: { length: 1 } }])
    await limiter.decide([checkOf(limiter.policies[0])])
    expect(store.calls).toHaveLength(asked + 1)
  })

  it('take nothing from either when a third one denies', async () => {
    const limiter = store.limiter({ policies: [...both, { name: 'r', limit: 21, window: '10s' }] })
    for (let i = 0; i < 21; i += 1) await limiter.consume('k')
    const { spent } = limiter.storeHealth().grants
    const { allowed, outcomes } = await limiter.consume('k')
    expect(allowed).toBe(false)
    expect(outcomes).toMatchObject([
      { allowed: true, remaining: 9_979, receipt: undefined },
      { allowed: true, remaining: 8_979, receipt: undefined },
      { allowed: false, remaining: 0 },
    ])
    expect(limiter.storeHealth().grants.spent).toBe(spent)
  })

  it.each(['open', 'closed'] as const)(
    'and a third one without its store, in mode %s',
    async (failureMode) => {
      const third = { name: 'r', limit: 100, window: '10s' } as const
      const limiter = store.limiter({ policies: [...both, third], failureMode })
      for (let i = 0; i < 21; i += 1) await limiter.consume('k')
      const { spent } = limiter.storeHealth().grants
      store.moods.consume = 'rejects'
      const { allowed } = await limiter.consume('k')
      expect(allowed).toBe(failureMode === 'open')
      expect(limiter.storeHealth().grants.spent).toBe(allowed ? spent + 2 : spent)
    },
  )
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
    const asked = store.of('grant').length
    expect((await consume(limiter)).source).toBe('store')
    expect(limiter.storeHealth()).toMatchObject({ grants: { spent: grants.spent + 1 }, keysOwed })
    for (let i = 0; i < 15; i += 1) await consume(limiter)
    expect(store.of('grant')).toHaveLength(asked)
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
    await vi.advanceTimersByTimeAsync(100)
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
