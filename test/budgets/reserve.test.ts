import { type CheckLimiter, memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

let redis: RedisServer
let client: Redis
let opened = 0

beforeAll(async () => {
  redis = await startRedis()
  client = new Redis(redis.url)
})

afterAll(async () => {
  client.disconnect()
  await redis.stop()
})

const tokens = { name: 'tokens', limit: 1_000, window: '10m', reserve: true } as const

describe.each(['memory', 'redis'])('a reservation in %s', (kind) => {
  let store: Store

  beforeEach(() => {
    opened += 1
    store =
      kind === 'memory'
        ? memoryStore()
        : redisStore(client, { prefix: `budgets${opened}`, heartbeatMs: 0, denialTtlMs: 0 })
  })

  afterEach(() => store.close?.())

  function limiterWith(options: SomeOptions): CheckLimiter {
    return patientLimiter({ store, ...options })
  }

  async function remaining(limiter: CheckLimiter, policy = 0): Promise<number | undefined> {
    return (await limiter.peek('k')).outcomes[policy]?.remaining
  }

  it.each(['sliding-log', 'fixed-window'] as const)(
    'holds units, and gives the rest back (%s)',
    async (algorithm) => {
      const limiter = limiterWith({ policies: [{ ...tokens, algorithm }] })
      const budget = await limiter.reserve('k', { units: 800, step: 0 })
      expect(budget.allowed).toBe(true)
      expect(budget.decision.outcomes).toMatchObject([{ limit: 1_000, remaining: 200 }])
      expect(await remaining(limiter)).toBe(200)
      expect((await limiter.consume('k', { cost: 201 })).allowed).toBe(false)
      for (let i = 0; i < 3; i += 1) expect(budget.spend(100)).toBe(true)
      expect(budget).toMatchObject({ left: 500, spent: 300 })
      await budget.settle()
      expect(await remaining(limiter)).toBe(700)
      expect(budget.spend(1)).toBe(false)
    },
  )

  it('is denied with the wait, and has nothing to spend', async () => {
    const limiter = limiterWith({ policies: [tokens] })
    await limiter.consume('k', { cost: 300 })
    const budget = await limiter.reserve('k', { units: 800 })
    expect(budget.allowed).toBe(false)
    expect(budget.decision.outcomes).toMatchObject([{ allowed: false, remaining: 700 }])
    expect(budget.decision.retryAfterMs).toBeGreaterThan(590_000)
    expect(budget.decision.retryAfterMs).toBeLessThanOrEqual(600_000)
    expect(budget.spend()).toBe(false)
    expect(budget.signal.aborted).toBe(true)
    await budget.settle({ total: 5 })
    expect(await remaining(limiter)).toBe(700)
    const never = await limiter.reserve('k', { units: 1_001 })
    expect(never.decision.retryAfterMs).toBe(Number.POSITIVE_INFINITY)
  })

  it('asks for a step more below half of one, and ends with the limit', async () => {
    const limiter = limiterWith({ policies: [tokens] })
    const budget = await limiter.reserve('k', { units: 100, step: 100 })
    let aborted = 0
    budget.signal.addEventListener('abort', () => (aborted += 1))
    let spent = 0
    for (let i = 0; i < 10_000 && budget.spend(5); i += 1) {
      spent += 5
      if (budget.left < 50)
        await vi.waitFor(() => expect(budget.left >= 50 || spent > 900).toBe(true))
    }
    expect(spent).toBe(1_000)
    expect(aborted).toBe(1)
    expect(await remaining(limiter)).toBe(0)
    await budget.settle()
    expect(await remaining(limiter)).toBe(0)
  })

  it('gets more, or says how long that takes', async () => {
    const limiter = limiterWith({ policies: [tokens] })
    const budget = await limiter.reserve('k', { units: 100, step: 0 })
    expect(await budget.more(900)).toMatchObject({ allowed: true })
    expect(budget.left).toBe(1_000)
    expect(budget.spend(600)).toBe(true)
    const { allowed, retryAfterMs } = await budget.more(1)
    expect(allowed).toBe(false)
    expect(retryAfterMs).toBeGreaterThan(0)
    expect(retryAfterMs).toBeLessThan(Number.POSITIVE_INFINITY)
    await budget.settle()
    expect(await remaining(limiter)).toBe(400)
    expect((await budget.more(1)).allowed).toBe(false)
  })

  it.each([
    { total: 350, left: 650 },
    { total: 900, left: 100 },
    { total: 1_200, left: 0 },
    { total: 120, left: 700 },
  ])(
    'counts the true total, and nothing that was spent comes back: %j',
    async ({ total, left }) => {
      const limiter = limiterWith({ policies: [tokens] })
      const budget = await limiter.reserve('k', { units: 500, step: 0 })
      budget.spend(300)
      await budget.settle({ total })
      expect(await remaining(limiter)).toBe(left)
    },
  )

  it('ends by itself at the end of its block, and aborts when it is cancelled', async () => {
    const limiter = limiterWith({ policies: [tokens] })
    {
      await using budget = await limiter.reserve('k', { units: 500 })
      budget.spend(100)
    }
    expect(await remaining(limiter)).toBe(900)
    const budget = await limiter.reserve('k', { units: 500 })
    const { signal } = budget
    budget.spend(100)
    await budget.cancel()
    expect(signal.aborted).toBe(true)
    expect(await remaining(limiter)).toBe(800)
  })

  it('is over all policies or none; policies without reserve take their cost', async () => {
    const money = { ...tokens, name: 'money', limit: 600 }
    const daily = { ...tokens, name: 'daily', algorithm: 'fixed-window' } as const
    const calls = { name: 'calls', limit: 2, window: '10m' } as const
    const limiter = limiterWith({ policies: [tokens, calls, money, daily] })
    const left = async () => (await limiter.peek('k')).outcomes.map((outcome) => outcome.remaining)
    const budget = await limiter.reserve('k', { units: 400, step: 0 })
    expect(budget.decision.outcomes.map(({ policy }) => policy.name)).toEqual([
      'tokens',
      'calls',
      'money',
      'daily',
    ])
    expect(await left()).toEqual([600, 1, 200, 600])
    const denied = await limiter.reserve('k', { units: 300 })
    expect(denied.allowed).toBe(false)
    expect(await left()).toEqual([600, 1, 200, 600])
    expect((await budget.more(201)).allowed).toBe(false)
    expect(budget.spend(50)).toBe(true)
    await budget.settle()
    expect(await left()).toEqual([950, 1, 550, 950])
    await (await limiter.reserve('k', { units: 10 })).settle()
    expect((await limiter.reserve('k', { units: 10 })).decision.outcomes).toMatchObject([
      {},
      { allowed: false },
      {},
      {},
    ])
    expect(await left()).toEqual([950, 0, 550, 950])
  })

  it('shares the grants of its key with all reservations of the process', async () => {
    const limiter = limiterWith({ policies: [{ ...tokens, limit: 100_000 }] })
    const budgets = await Promise.all(
      Array.from({ length: 200 }, () => limiter.reserve('k', { units: 50, step: 50 })),
    )
    for (let round = 0; round < 40; round += 1) {
      for (const budget of budgets) expect(budget.spend(5)).toBe(true)
      await until('all have units', () => budgets.every(({ left }) => left >= 25))
    }
    const held = budgets.reduce((sum, { left }) => sum + left, 0)
    const now = (await remaining(limiter)) ?? 0
    // Beside the reserved units, many grants have up to an eighth of them spare.
    expect(now).toBeLessThanOrEqual(100_000 - 40_000 - held)
    expect(now).toBeGreaterThanOrEqual(100_000 - 40_000 - held * 1.25 - 50)
    await Promise.all(budgets.map((budget) => budget.settle()))
    expect(await remaining(limiter)).toBe(60_000)
  })

  it('outlives its grants: what is not spent stays held', async () => {
    // A grant lives 2 s, and a busy machine may stand still for one.
    const limiter = limiterWith({ policies: [{ ...tokens, window: '40s' }] })
    const budget = await limiter.reserve('k', { units: 800, step: 0 })
    const startMs = Date.now()
    while (Date.now() - startMs < 2_300) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      expect(budget.spend(10)).toBe(true)
      expect(await remaining(limiter)).toBe(200)
    }
    await budget.settle()
    expect(await remaining(limiter)).toBe(1_000 - budget.spent)
  })
})

describe('a budget that was spent whole', () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1_795_195_800_000 }))
  afterEach(() => void vi.useRealTimers())

  it('renews what it gets later', async () => {
    const limiter = patientLimiter({
      store: memoryStore(),
      policies: [{ ...tokens, window: '10s' }],
    })
    const budget = await limiter.reserve('k', { units: 100, step: 0 })
    expect(budget.spend(100)).toBe(true)
    await vi.advanceTimersByTimeAsync(2_000)
    expect((await budget.more(100)).allowed).toBe(true)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(budget.spend(100)).toBe(true)
    await budget.settle()
  })
})

describe('budgets of random work', () => {
  const windowMs = 10_000

  beforeEach(() => void vi.useFakeTimers({ now: 1_795_195_800_000 }))
  afterEach(() => void vi.useRealTimers())

  /** A generator with a seed, so that a failure comes again. */
  function randomOf(seed: number): (below: number) => number {
    let state = seed
    return (below) => {
      state = (state * 48_271) % 2_147_483_647
      return state % below
    }
  }

  it.each(Array.from({ length: 12 }, (_, index) => index + 1))(
    'produces the limit in no rolling window, and uses it (seed %i)',
    async (seed) => {
      const random = randomOf(seed * 7_919)
      const limiter = patientLimiter({ limit: 1_000, window: '10s', reserve: true })
      const produced: { readonly atMs: number; readonly units: number }[] = []
      const note = (units: number) => {
        produced.push({ atMs: Date.now(), units })
        const recent = produced.filter(({ atMs }) => atMs > Date.now() - windowMs)
        expect(recent.reduce((sum, each) => sum + each.units, 0)).toBeLessThanOrEqual(1_000)
      }
      const work = new Map<Awaited<ReturnType<typeof limiter.reserve>>, number>()
      let steadyUnits = 0
      const startMs = Date.now()
      while (Date.now() - startMs < 6 * windowMs) {
        if (work.size < 12) {
          const units = 1 + random(40)
          const budget = await limiter.reserve('k', { units, step: 1 + random(40) })
          // Few streams have most of the units.
          if (budget.allowed) work.set(budget, 20 + 4_000 / (1 + random(200)))
        }
        for (const [budget, length] of work) {
          const units = 1 + random(12)
          if (budget.left < units) await budget.more(units)
          if (budget.spend(units)) note(units)
          if (budget.spent < length && !budget.signal.aborted) continue
          work.delete(budget)
          await budget.settle()
        }
        if (random(9) === 0 && (await limiter.consume('k')).allowed) note(1)
        await vi.advanceTimersByTimeAsync(random(2) * random(600))
      }
      const lastMs = Date.now()
      for (const { atMs, units } of produced) if (atMs > lastMs - 4 * windowMs) steadyUnits += units
      expect(steadyUnits).toBeGreaterThan(0.9 * 4 * 1_000)
    },
  )
})

describe('a reservation while Redis is away', () => {
  it('spends what is held, and then what the failure mode admits', async () => {
    const server = await startRedis()
    const own = new Redis(server.url, { maxRetriesPerRequest: 0 })
    own.on('error', () => undefined)
    const store = redisStore(own, { heartbeatMs: 0 })
    const limiter = patientLimiter({
      store,
      deadlineMs: 500,
      policies: [{ ...tokens, window: '40s' }],
      observers: { onStoreError: () => undefined },
    })
    const budget = await limiter.reserve('k', { units: 300, step: 0 })
    await server.stop()
    expect(budget.spend(200)).toBe(true)
    expect(limiter.storeHealth().keysOwed).toBe(0)
    expect((await budget.more(500)).allowed).toBe(true)
    expect((await limiter.reserve('k', { units: 501 })).decision.source).toBe('fallback')
    // The grant ends after two seconds, and the failure mode admits what is left of it.
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    expect(budget.spend(600)).toBe(true)
    expect((await budget.more(500)).allowed).toBe(false)
    await budget.settle()
    expect(limiter.storeHealth().keysOwed).toBe(1)
    own.disconnect()
    await store.close?.()
  })
})

describe('the option reserve', () => {
  it.each([
    [{ algorithm: 'token-bucket' }, /^reserve must be left out with algorithm 'token-bucket'/],
    [
      { algorithm: 'sliding-counter' },
      /only 'sliding-log' and 'fixed-window' have it, but is true/,
    ],
    [{ window: '100ms' }, /^reserve must be left out with a window below 200 ms/],
    [{ countDenied: true }, /^reserve must be left out beside countDenied/],
    [{ async: { maxUncounted: 5 } }, /^reserve must be left out beside async/],
    [{ reserve: 800 }, /^reserve must be true or false, but is 800/],
  ])('is refused with %j', (options, message) => {
    const all = { limit: 10, window: '1m', reserve: true, ...options }
    expect(() => patientLimiter(all as SomeOptions)).toThrow(message)
  })

  it('is needed by reserve, whose options are checked', async () => {
    const plain = patientLimiter({ limit: 10, window: '1m' })
    await expect(plain.reserve('k', { units: 1 })).rejects.toThrow(/no policy of the limiter has/)
    const limiter = patientLimiter({ limit: 10, window: '1m', reserve: true })
    await expect(limiter.reserve('k', { units: 0 })).rejects.toThrow(/units must be a whole number/)
    await expect(limiter.reserve('k', { units: 1, step: -1 })).rejects.toThrow(/step must be/)
    const budget = await limiter.reserve('k', { units: 1 })
    expect(() => budget.spend(-1)).toThrow(/units must be a whole number/)
    expect(() => budget.spend(Number.NaN)).toThrow(/units must be a whole number/)
  })
})
