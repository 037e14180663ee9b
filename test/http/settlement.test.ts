import { createLimiter, memoryStore, unlimited } from '@sluice/core'
import type { GuardFields } from '@sluice/http'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { raise } from '../support/raise.ts'
import { until } from '../support/until.ts'
import { exchange, guardOf, now } from './exchange.ts'

const policy = { name: 'p', limit: 1_000, window: '1m', algorithm: 'fixed-window' } as const

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }))
afterEach(() => void vi.useRealTimers())

function guarded(options: GuardFields<object> = {}) {
  const store = memoryStore()
  const quota = options.policies ? {} : policy
  const guard = guardOf({ ...quota, store, key: () => 'ada', ...options })
  const limiter = createLimiter({ ...policy, store })
  return {
    guard,
    limiter,
    used: async () => 1_000 - ((await limiter.peek('ada')).outcomes[0]?.remaining ?? 0),
    check() {
      const asked = exchange()
      const passage = now(guard.check(asked))
      if (passage.hold) asked.settleAtEnd(passage.hold)
      return { ...asked, ...passage }
    },
  }
}

describe('what a request took', () => {
  it('is refunded at most once, in any order of ends, refunds, resets and windows', async () => {
    const ends = ['finish 200', 'finish 500', 'abort', 'refund']
    const event = fc.constantFrom(...ends, 'request', 'request', 'reset', 'next window')
    const steps = fc.array(fc.tuple(event, fc.nat({ max: 9 })), { maxLength: 40 })
    const law = fc.asyncProperty(steps, async (drawn) => {
      const refundWhen = (_: object, { status }: { status: number }) => status >= 500
      const { check, used, limiter, guard } = guarded({ refundWhen })
      const requests: { passage: ReturnType<typeof check>; counts: boolean; isOver: boolean }[] = []
      const forget = () => {
        for (const request of requests) request.counts = false
      }
      for (const [name, index] of drawn) {
        const request = requests[index % Math.max(1, requests.length)]
        if (name === 'request') requests.push({ passage: check(), counts: true, isOver: false })
        else if (name === 'reset') {
          await limiter.reset('ada')
          forget()
        } else if (name === 'next window') {
          vi.advanceTimersByTime(60_000)
          forget()
        } else if (request && name === 'refund') {
          if (request.passage.decision) await guard.limiter.refund(request.passage.decision)
          request.counts = false
        } else if (request) {
          if (!request.isOver && name === 'finish 500') request.counts = false
          request.isOver = true
          request.passage.end(name === 'abort' ? undefined : Number(name.split(' ')[1]))
        }
        expect(await used()).toBe(requests.filter(({ counts }) => counts).length)
      }
    })
    await fc.assert(law, { numRuns: 200 })
  })

  it('is held only if it may be refunded', () => {
    expect(guarded().check().hold).toBeUndefined()
    expect(guarded({ refundWhen: () => true, limit: 0 }).check().hold).toBeUndefined()
    expect(guarded({ refundWhen: () => true }).check().hold).toBeDefined()
  })

  it('is held beside a lease, and beside a seat in the queue', async () => {
    const refundWhen = () => true
    const inFlight = { name: 'inflight', algorithm: 'concurrency', limit: 1 } as const
    const { check, used } = guarded({ policies: [{ ...policy, refundWhen }, inFlight] })
    const { end } = check()
    expect(check().verdict.action).toBe('reject')
    end(200)
    expect(await used()).toBe(0)
    expect(check().verdict.action).toBe('pass')

    const bucket = { name: 'q', algorithm: 'leaky-bucket', limit: 1, window: '10s' } as const
    const queue = guarded({ ...bucket, refundWhen })
    queue.check()
    const waiting = queue.check()
    expect(waiting.verdict.action).toBe('delay')
    expect(queue.guard.waiting).toBe(1)
    waiting.end()
    expect(queue.guard.waiting).toBe(0)
  })

  it('is decided once if policies share the function', () => {
    const refundWhen = vi.fn(() => true)
    const policies = [policy, { ...policy, name: 'other' }]
    const { check } = guarded({ policies, refundWhen })
    const { native, end } = check()
    end(503)

    expect(refundWhen).toHaveBeenCalledExactlyOnceWith(native, { status: 503 })
  })

  it('is decided for each policy by its function', () => {
    const { check } = guarded({
      policies: [
        { ...policy, name: 'failed', chargeWhen: (_, { status }) => status === 401 },
        { ...policy, name: 'healthy', refundWhen: (_, { status }) => status >= 500 },
        policy,
      ],
    })
    for (const status of [200, 401, 500, 500]) check().end(status)

    const { decision } = check()
    expect(decision?.outcomes.map(({ remaining }) => remaining)).toEqual([998, 997, 995])
  })

  it.each<[string, GuardFields<object>['refundWhen'] & object]>([
    ['throws', () => raise('a\nb')],
    ['rejects', async () => raise('secret')],
    ['answers neither true nor false', () => 'yes' as never],
  ])('is kept when the function %s, and that is reported on one line', async (_, refundWhen) => {
    const onInvalid = vi.fn()
    const { check, used } = guarded({ refundWhen, observers: { onInvalid } })
    check().end(500)
    await until('it is reported', () => onInvalid.mock.calls.length === 1)

    const message = /^refundWhen: it must return true or false, but it .*; the charge was kept$/
    expect(onInvalid.mock.calls[0]?.[0]).toEqual({
      ...{ code: 'SLUICE_ANSWER_INVALID', message: expect.stringMatching(message) },
    })
    expect(JSON.stringify(onInvalid.mock.calls)).not.toMatch(/secret|\\n/)
    expect(await used()).toBe(1)
  })

  it("follows the policy's function over the guard's", async () => {
    const policies = [{ ...policy, refundWhen: () => false }]
    const { check, used } = guarded({ policies, chargeWhen: () => false })
    check().end(200)
    expect(await used()).toBe(1)
  })
})

describe('late costs', () => {
  it('add one listener, and only if there are any', () => {
    const { check } = guarded()
    const { held, decision } = check()
    expect(held).toHaveLength(0)
    decision?.charge(0)
    expect(held).toHaveLength(0)
    decision?.charge(1)
    decision?.charge(1)
    expect(held).toHaveLength(1)
  })

  it('are charged when the response ends or the client disconnects, then immediately', async () => {
    for (const status of [200, undefined]) {
      const { check, used } = guarded()
      const { decision, end } = check()
      decision?.charge(2)
      expect(await used()).toBe(1)
      end(status)
      expect(await used()).toBe(3)
      decision?.charge(2)
      expect(await used()).toBe(5)
    }
  })

  it('of a request that was refused are charged too', async () => {
    const { check, used } = guarded({ cost: 1_001 })
    const { decision, end } = check()
    decision?.charge(2)
    end(429)
    expect(await used()).toBe(2)
  })

  it('are charged to one policy alone where it is named', () => {
    const bytes = { ...policy, name: 'bytes', cost: 0, unit: 'content-bytes' } as const
    const { check } = guarded({ policies: [policy, bytes] })
    const { decision, end } = check()
    decision?.charge(900, 'bytes')
    end(200)

    expect(check().decision?.outcomes.map(({ remaining }) => remaining)).toEqual([998, 100])
  })

  it.each([
    [-1, undefined, /charge\(\) must be a whole number from 0 .*, but is -1/],
    [1.5, undefined, /but is 1\.5/],
    [Number.NaN, undefined, /but is NaN/],
    [1, 'other', /charge\(\) names 'other', but this limiter has no such policy; it has p/],
  ])('cannot be %s of policy %s', async (units, name, message) => {
    const { check, used } = guarded()
    expect(() => check().decision?.charge(units, name)).toThrow(message)
    expect(await used()).toBe(1)
  })

  it('of a refunded request are not charged', async () => {
    const { check, used } = guarded({ refundWhen: (_, { status }) => status >= 500 })
    const { decision, end } = check()
    decision?.charge(10)
    end(500)
    decision?.charge(10)
    expect(await used()).toBe(0)
  })

  it('wait for an async chargeWhen', async () => {
    let resolve: (value: boolean) => void = () => undefined
    const promise = new Promise<boolean>((settle) => (resolve = settle))
    const { check, used } = guarded({ refundWhen: () => promise })
    const { decision, end } = check()
    end(500)
    decision?.charge(10)
    expect(await used()).toBe(1)
    resolve(false)
    await until('all is charged', async () => (await used()) === 11)
  })

  it('are not charged to policies that count requests in flight', async () => {
    const inFlight = { name: 'inflight', algorithm: 'concurrency', limit: 1 } as const
    const { check, used } = guarded({ policies: [policy, inFlight] })
    const { decision, end } = check()
    decision?.charge(10)
    expect(() => decision?.charge(1, 'inflight')).toThrow('not one that counts requests in')
    end(200)
    expect(await used()).toBe(11)
    expect(check().verdict.action).toBe('pass')
  })

  it('are charged under the key and scope of their request', async () => {
    const store = memoryStore()
    const guard = guardOf({ limit: 10, window: '1m', store, key: () => 'ada' })
    const asked = exchange({}, 'POST /a')
    now(guard.check(asked)).decision?.charge(4)
    asked.end(200)

    const remaining = (scope: string) =>
      now(guard.check(exchange({}, scope))).decision?.outcomes[0]?.remaining
    expect(remaining('POST /a')).toBe(4)
    expect(remaining('POST /b')).toBe(9)
  })
})

describe('budgets', () => {
  const tokens = { name: 'tokens', limit: 100, window: '1m' } as const

  it('of several policies are held all or none, and each is spent by its name', async () => {
    let price = 10_001
    const store = memoryStore()
    const money = { name: 'money', limit: 10_000, window: '1h' } as const
    const reserving = [tokens, money].map((options) => ({ ...options, reserve: true }))
    const limiter = createLimiter({ policies: reserving, store })
    const policies = [{ ...tokens, reserve: () => 40 }, { ...money, reserve: () => price }, policy]
    const guard = guardOf({ policies, store, key: () => 'ada' })
    const used = async () =>
      (await limiter.peek('ada')).outcomes.map(({ limit = 0, remaining = 0 }) => limit - remaining)

    expect((await guard.check(exchange())).verdict.action).toBe('reject')
    expect(await used()).toEqual([0, 0])
    price = 3_000
    const { decision, hold } = await guard.check(exchange())
    expect(decision?.spend(10, 'tokens')).toBe(true)
    expect(decision?.spend(3_001, 'money')).toBe(false)
    expect(decision?.spend(2_000, 'money')).toBe(true)
    expect(() => decision?.spend(1)).toThrow(/no policy, but there are several .* tokens, money/)
    expect(() => decision?.budget('typo')).toThrow(/'typo'; the policies with reserve are/)
    hold?.finish(200)
    await until('the rest comes back', async () => (await used()).join() === '10,2000')
  })

  it.each(['finish', 'abort'] as const)('end with the response: %s', async (how) => {
    const store = memoryStore()
    const limiter = createLimiter({ ...tokens, reserve: true, store })
    const guard = guardOf({ ...tokens, reserve: () => 40, store, key: () => 'ada' })
    const { decision, hold, verdict } = await guard.check(exchange())
    const budget = decision?.budget()
    expect(Object.fromEntries(verdict.fields).RateLimit).toMatch(/^"tokens";r=60;/)
    expect(decision?.spend(15)).toBe(true)
    expect(budget).toMatchObject({ left: 25, spent: 15 })
    hold?.[how](200)

    expect(budget?.spend(1)).toBe(false)
    if (how === 'abort') expect(budget?.signal.aborted).toBe(true)
    await until('the rest comes back', async () => (await limiter.peek('ada')).remaining === 85)
  })

  it('are unlimited if nothing is limited', async () => {
    const limits = { limit: (): typeof unlimited => unlimited, defaultLimit: 1, reserve: () => 40 }
    const { decision } = await guardOf({ ...tokens, ...limits }).check(exchange())
    expect(decision?.spend(1_000_000)).toBe(true)
  })
})

it.each<[object, RegExp]>([
  [{ chargeWhen: true }, /^chargeWhen must be a function of the request and .*, but is true$/],
  [{ refundWhen: 500 }, /^refundWhen must be a function/],
  [
    { chargeWhen: () => true, refundWhen: () => true },
    /^chargeWhen and refundWhen cannot be combined/,
  ],
  [{ idempotencyKey: 'idempotency-key' }, /^idempotencyKey must be true for the header Idem/],
  [{ enforce: () => true, mode: 'shadow' }, /^enforce cannot be combined with mode 'shadow'/],
])('a guard refuses %o', (options, message) => {
  expect(() => guardOf({ ...policy, ...options })).toThrow(message)
})

it('a guard names the policy of a list whose functions cannot be combined together', () => {
  const both = { ...policy, name: 'q', chargeWhen: () => true, refundWhen: () => true }
  expect(() => guardOf({ policies: [policy, both] })).toThrow(
    /^policies\[1\]\.chargeWhen and policies\[1\]\.refundWhen cannot/,
  )
})
