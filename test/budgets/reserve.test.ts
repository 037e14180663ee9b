import { type CheckLimiter, memoryStore, Registrations, type Store } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { afterEach, beforeEach, describe, expect, vi } from 'vitest'
import { TroubledStore } from '../core/resilience/troubled-store.ts'
import { checkOf, patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import { it } from '../support/redis-test.ts'
import { until } from '../support/until.ts'

let opened = 0

const tokens = { name: 'tokens', limit: 1_000, window: '10m', reserve: true } as const
const seconds = { ...tokens, window: '10s' } as const

const remaining = async (limiter: CheckLimiter) => (await limiter.peek('k')).outcomes[0]?.remaining

function underFakeClock(): void {
  beforeEach(() => void vi.useFakeTimers({ now: 1_795_195_800_000 }))
  afterEach(() => void vi.useRealTimers())
}

describe.each(['memory', 'redis'])('a reservation in %s', (kind) => {
  let store: Store

  it.beforeEach(({ client }) => {
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

  it('is denied with a wait, and has nothing to spend', async () => {
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

  it.each([
    ['less', 300, 700],
    ['more', 900, 100],
  ])('takes the units spent from a policy in shadow: %s than estimated', async (_, total, rest) => {
    const trial = { ...tokens, name: 'trial' }
    const limiter = limiterWith({ policies: [{ ...trial, enforce: { share: 0 } }, tokens] })
    const budget = await limiter.reserve('k', { units: 500 })
    expect(budget.decision.outcomes).toMatchObject([{ limit: 1_000, remaining: 500 }])
    budget.spend(300)
    await budget.settle({ total })
    const enforced = limiterWith({ policies: [trial] })
    await until('the trial has counted', async () => (await remaining(enforced)) === rest)
    expect(await remaining(limiter)).toBe(rest)
  })

  it('holds nothing for 0 units, and denies them at a limit of 0', async () => {
    const limiter = limiterWith({ policies: [tokens] })
    const check = checkOf(limiter.policies[0], { cost: 0 })
    const { decision } = await limiter.reserveChecks([check])
    expect(decision).toMatchObject({ allowed: true, outcomes: [{ remaining: undefined }] })
    const blocked = await limiter.reserveChecks([{ ...check, limit: 0 }])
    expect(blocked.decision.allowed).toBe(false)
  })

  it('requests another step below half of one, and ends at the limit', async () => {
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

  it('gets more units, or reports the wait', async () => {
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
  ])('counts the true total, and never returns spent units: %j', async ({ total, left }) => {
    const limiter = limiterWith({ policies: [tokens] })
    const budget = await limiter.reserve('k', { units: 500, step: 0 })
    budget.spend(300)
    await budget.settle({ total })
    expect(await remaining(limiter)).toBe(left)
  })

  it('ends with its block, and aborts when cancelled', async () => {
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

  it('covers all policies or none; policies without reserve take their cost', async () => {
    const money = { ...tokens, name: 'money', limit: 600 }
    const daily = { ...tokens, name: 'daily', algorithm: 'fixed-window' } as const
    const calls = { name: 'calls', limit: 2, window: '10m' } as const
    const limiter = limiterWith({ policies: [tokens, calls, money, daily] })
    const left = async () => (await limiter.peek('k')).outcomes.map((outcome) => outcome.remaining)
    const budget = await limiter.reserve('k', { units: 400, step: 0 })
    const names = ['tokens', 'calls', 'money', 'daily']
    expect(budget.decision.outcomes.map(({ policy }) => policy.name)).toEqual(names)
    expect(await left()).toEqual([600, 1, 200, 600])
    const denied = await limiter.reserve('k', { units: 300 })
    expect(denied.allowed).toBe(false)
    expect(await left()).toEqual([600, 1, 200, 600])
    expect((await budget.more(201)).allowed).toBe(false)
    expect(budget.spend(50)).toBe(true)
    await budget.settle()
    expect(await left()).toEqual([950, 1, 550, 950])
    await (await limiter.reserve('k', { units: 10 })).settle()
    const { outcomes } = (await limiter.reserve('k', { units: 10 })).decision
    expect(outcomes.map(({ allowed }) => allowed)).toEqual([true, false, true, true])
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

it('does not call the store while a denial of its key is cached', async ({ client }) => {
  const store = redisStore(client, { prefix: 'denied', heartbeatMs: 0, denialTtlMs: 60_000 })
  const onStoreCall = vi.fn()
  const limiter = patientLimiter({ store, policies: [tokens], observers: { onStoreCall } })
  await limiter.consume('k', { cost: 1_000 })
  const reserve = () => limiter.reserve('k', { units: 10 })
  expect((await reserve()).allowed).toBe(false)
  onStoreCall.mockClear()
  for (let i = 0; i < 20; i += 1) expect((await reserve()).allowed).toBe(false)
  expect(onStoreCall).not.toHaveBeenCalled()
  await store.close()
})

describe('a budget', () => {
  underFakeClock()

  it('that was spent completely renews later grants', async () => {
    const limiter = patientLimiter({ policies: [seconds] })
    const budget = await limiter.reserve('k', { units: 100, step: 0 })
    expect(budget.spend(100)).toBe(true)
    await vi.advanceTimersByTimeAsync(2_000)
    expect((await budget.more(100)).allowed).toBe(true)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(budget.spend(100)).toBe(true)
    await budget.settle()
  })

  it('from held units reports a decreasing reset', async () => {
    const limiter = patientLimiter({ policies: [tokens] })
    await limiter.consume('k', { cost: 900 })
    const first = await limiter.reserve('k', { units: 100, step: 0 })
    const resetMs = first.decision.outcomes[0]?.resetMs ?? 0
    await vi.advanceTimersByTimeAsync(2_000)
    void first.settle()
    const second = await limiter.reserve('k', { units: 50, step: 0 })
    expect(second.decision.outcomes).toMatchObject([{ resetMs: resetMs - 2_000 }])
  })
})

describe('budgets of random work', () => {
  const windowMs = 10_000

  underFakeClock()

  /** A generator with a seed, so that a failure comes again. */
  function randomOf(seed: number): (below: number) => number {
    let state = seed
    return (below) => {
      state = (state * 48_271) % 2_147_483_647
      return state % below
    }
  }

  it.each(Array.from({ length: 12 }, (_, index) => index + 1))(
    'never exceeds the limit in any rolling window, and uses it (seed %i)',
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

describe('what is left of reservations', () => {
  underFakeClock()

  const inWindows = { ...seconds, algorithm: 'fixed-window' } as const

  it.each([seconds, inWindows])('is nothing once they are settled: $algorithm', async (policy) => {
    const limiter = patientLimiter({ policies: [policy] })
    for (let i = 0; i < 1_000; i += 1) {
      const budget = await limiter.reserve(`k${i}`, { units: 10 })
      budget.spend(1 + (i % 10))
      await budget.settle()
    }
    await vi.advanceTimersByTimeAsync(1_000)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('belongs to the fixed window in which it was reserved', async () => {
    const limiter = patientLimiter({ policies: [inWindows] })
    const [early, late] = [await limiter.reserve('k', { units: 500, step: 0 }), { units: 100 }]
    await vi.advanceTimersByTimeAsync(10_000)
    const own = await limiter.reserve('k', late)
    expect(early.spend(200)).toBe(true)
    await early.settle()
    expect(await remaining(limiter)).toBe(900)
    expect(own.spend(60)).toBe(true)
    await own.settle()
    expect(await remaining(limiter)).toBe(940)
  })

  it('cannot be spent after the limiter was closed, and other limiters keep theirs', async () => {
    const store = memoryStore()
    const [limiter, other] = [1, 2].map(() => patientLimiter({ store, policies: [seconds] }))
    if (!limiter || !other) throw new Error('no limiter')
    const budget = await limiter.reserve('k', { units: 500, step: 0 })
    const others = await other.reserve('k', { units: 100, step: 0 })
    budget.spend(100)
    await limiter.close()
    expect(await remaining(other)).toBe(800)
    expect(others.spend(50)).toBe(true)
    expect(budget.spend(1)).toBe(false)
    expect(budget.signal.aborted).toBe(true)
    expect((await budget.more(10)).allowed).toBe(false)
    await budget.settle()
    expect((await limiter.reserve('k', { units: 10 })).allowed).toBe(false)
    await others.settle()
    expect(await remaining(other)).toBe(850)
  })

  it('is reported on close: spent units count from that time', async () => {
    const store = memoryStore()
    const limiter = patientLimiter({ store, policies: [seconds] })
    for (let i = 0; i < 2; i += 1) {
      const budget = await limiter.reserve('k', { units: 300, step: 0 })
      expect(budget.spend(300)).toBe(true)
    }
    await limiter.close()
    await vi.advanceTimersByTimeAsync(10_001)
    expect(await remaining(patientLimiter({ store, policies: [seconds] }))).toBe(1_000)
  })

  it('is renewed in time after a set of policies has a shorter window', async () => {
    const store = memoryStore()
    const [set, next] = [new Registrations(), new Registrations()]
    const before = set.collect(() => patientLimiter({ store, policies: [tokens] }))
    const long = await before.reserve('k', { units: 10, step: 0 })
    set.end()
    const after = next.collect(() => patientLimiter({ store, policies: [seconds] }))
    const short = await after.reserve('k', { units: 500, step: 0 })
    for (let round = 0; round < 20; round += 1) {
      await vi.advanceTimersByTimeAsync(100)
      expect(short.spend(1)).toBe(true)
    }
    expect(long.spend(10)).toBe(true)
    await Promise.all([long.settle(), short.settle()])
  })

  it('is held under the limit of its own tier', async () => {
    const limiter = patientLimiter({ policies: [seconds] })
    await limiter.consume('k', { cost: 90 })
    const tier = async (limit: number, cost: number) => {
      const check = checkOf(limiter.policies[0], { limit, cost })
      return (await limiter.reserveChecks([check])).decision
    }
    const [small, large] = await Promise.all([tier(100, 50), tier(1_000, 60)])
    expect([small.allowed, large.allowed]).toEqual([false, true])
  })

  it('is not spent by a process whose clocks say that its grant has ended', async () => {
    const store = new TroubledStore()
    const limiter = patientLimiter({ store, policies: [seconds], deadlineMs: 1_000 })
    const reserve = () => limiter.reserve('k', { units: 100, step: 0 })
    const budgets = [await reserve(), await reserve(), await reserve()]
    store.mood = 'hangs'
    for (const budget of budgets) expect(budget.spend(1)).toBe(true)
    // The wall clock alone goes on while a machine is suspended; it may also be set back.
    vi.setSystemTime(Date.now() + 600)
    expect(budgets[0]?.spend(1)).toBe(false)
    vi.setSystemTime(Date.now() - 60_000)
    expect(budgets[1]?.spend(1)).toBe(false)
  })
})

describe('a reservation at a store that fails', () => {
  underFakeClock()

  function troubled(more: SomeOptions = {}) {
    const store = new TroubledStore()
    const options = { observers: { onStoreError: () => undefined }, deadlineMs: 100, ...more }
    return { store, limiter: patientLimiter({ store, policies: [seconds], ...options }) }
  }

  it('is answered within one deadline', async () => {
    const calls = { name: 'calls', limit: 10, window: '10s' } as const
    const { store, limiter } = troubled({ policies: [seconds, calls] })
    const before = await limiter.reserve('k', { units: 100, step: 0 })
    store.mood = 'hangs'
    const answers: string[] = []
    const note = (name: string) => (answer: { readonly allowed: boolean }) =>
      void answers.push(`${name} ${answer.allowed}`)
    void limiter.reserve('k', { units: 100 }).then(note('reserve'))
    void limiter.reserve('k', { units: 950 }).then(note('too many'))
    void before.more(50).then(note('more'))
    void before.more(950).then(note('too much more'))
    await vi.advanceTimersByTimeAsync(60)
    void limiter.reserve('k', { units: 100 }).then(note('later'))
    await vi.advanceTimersByTimeAsync(50)
    const admitted = ['later true', 'more true', 'reserve true']
    expect(answers.sort()).toEqual([...admitted, 'too many false', 'too much more false'])
  })

  it('spends held units, then what the failure mode admits', async () => {
    const { store, limiter } = troubled({ policies: [{ ...tokens, window: '40s' }] })
    const budget = await limiter.reserve('k', { units: 300, step: 0 })
    store.mood = 'rejects'
    expect(budget.spend(200)).toBe(true)
    expect(limiter.storeHealth().keysOwed).toBe(0)
    expect((await budget.more(500)).allowed).toBe(true)
    expect((await limiter.reserve('k', { units: 501 })).decision.source).toBe('fallback')
    // The grant ends after two seconds, and the failure mode admits what is left of it.
    await vi.advanceTimersByTimeAsync(2_500)
    expect(budget.spend(600)).toBe(true)
    expect((await budget.more(500)).allowed).toBe(false)
    await budget.settle()
    expect(limiter.storeHealth().keysOwed).toBe(1)
  })

  it('has units of the failure mode, which count for as long as they may be spent', async () => {
    const { store, limiter } = troubled()
    store.mood = 'rejects'
    const budget = await limiter.reserve('k', { units: 500, step: 0 })
    await vi.advanceTimersByTimeAsync(25_000)
    expect((await limiter.consume('k', { cost: 501 })).allowed).toBe(false)
    expect((await limiter.consume('k', { cost: 300 })).allowed).toBe(true)
    expect(budget.spend(200)).toBe(true)
    await budget.settle()
    expect((await limiter.consume('k', { cost: 501 })).allowed).toBe(false)
    expect((await limiter.consume('k', { cost: 500 })).allowed).toBe(true)
  })

  it.each([false, true])(
    'is charged once when the store is back (settled before: %s)',
    async (isEarly) => {
      const { store, limiter } = troubled({ policies: [tokens] })
      const budget = await limiter.reserve('k', { units: 300, step: 0 })
      expect(budget.spend(100)).toBe(true)
      store.mood = 'hangs'
      const more = budget.more(200)
      await vi.advanceTimersByTimeAsync(200)
      expect((await more).allowed).toBe(true)
      expect(budget.spend(350)).toBe(true)
      const settling = isEarly ? budget.settle() : undefined
      await vi.advanceTimersByTimeAsync(2_000)
      await settling
      // It does all that it was asked while it was frozen.
      store.mood = 'answers'
      for (const call of store.calls) call.answer()
      await vi.advanceTimersByTimeAsync(30_000)
      await budget.settle()
      for (let round = 0; round < 20; round += 1) {
        await limiter.consume('other')
        await vi.advanceTimersByTimeAsync(1_000)
      }
      expect((await limiter.peek('k')).outcomes).toMatchObject([{ remaining: 550 }])
      expect(limiter.storeHealth().keysOwed).toBe(0)
    },
  )

  function throwNothing(): never {
    throw undefined
  }

  it.each([
    ['throws nothing', throwNothing],
    ['answers null', () => null],
    ['answers a list of nothing', () => Promise.resolve([null])],
  ])('leaks nothing when the store %s', async (_, grant) => {
    const { store, limiter } = troubled()
    store.grant = grant as never
    const budget = await limiter.reserve('k', { units: 400, step: 100 })
    for (let i = 0; i < 8; i += 1) budget.spend(50)
    await budget.more(10)
    await budget.settle()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(vi.getTimerCount()).toBe(0)
  })
})

it('a reservation needs a policy with reserve, and its units are checked', async () => {
  const plain = patientLimiter({ limit: 10, window: '1m' })
  await expect(plain.reserve('k', { units: 1 })).rejects.toThrow(/no policy of the limiter has/)
  const limiter = patientLimiter({ policies: [tokens] })
  await expect(limiter.reserve('k', { units: 0 })).rejects.toThrow(/units must be a whole number/)
  await expect(limiter.reserve('k', { units: 1, step: -1 })).rejects.toThrow(/step must be/)
  const budget = await limiter.reserve('k', { units: 1 })
  for (const units of [-1, Number.NaN]) {
    expect(() => budget.spend(units)).toThrow(/units must be a whole number/)
  }
})
