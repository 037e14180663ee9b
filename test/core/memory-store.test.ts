import crypto from 'node:crypto'
import { algorithmNames, createLimiter, maxKeyLength, memoryStore, Receipt } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { algorithmPolicy } from '../stores/algorithm-policy.ts'
import { policyOf } from '../stores/traces.ts'
import { fakeTime } from '../support/fake-time.ts'
import { checkOf, limiterOf } from '../support/patient-limiter.ts'

fakeTime(['Date'], { now: 1_795_195_800_000 })

it.each(algorithmNames.filter((name) => name !== 'concurrency'))(
  'refunds nothing in a state newer than the receipt, whatever the clock does (%s)',
  async (algorithm) => {
    const policy = algorithmPolicy(algorithm, { limit: 5, window: '1m' })
    const limiter = limiterOf({ store: memoryStore(), ...policy })
    const take = async () => {
      const decisions = []
      for (let unit = 0; unit < 5; unit += 1) decisions.push(await limiter.consume('k'))
      return decisions
    }
    const old = await take()
    vi.setSystemTime(Date.now() + 180_000)
    await take()
    vi.setSystemTime(Date.now() - 301_000)
    for (const decision of old) expect(await limiter.refund(decision)).toBe(false)
  },
)

it('keeps what each key has taken when the map of a policy is divided', async () => {
  const store = memoryStore()
  const limiter = limiterOf({ store, limit: 1, window: '1h' })
  const keys = Array.from({ length: 17_000 }, (_, index) => `key-${index}`)
  for (const key of keys) expect((await limiter.consume(key)).allowed).toBe(true)
  for (const key of keys) expect((await limiter.consume(key)).allowed).toBe(false)
  for (const key of keys) await limiter.reset(key)
  expect(store.size).toBe(0)
})

describe('a flood of keys', () => {
  it.each(algorithmNames)(
    'ten times the cap leaves memory bounded, and a blocked key blocked (%s)',
    async (algorithm) => {
      const store = memoryStore({ maxKeys: 1_000 })
      const limiter = limiterOf({
        store,
        ...algorithmPolicy(algorithm, { limit: 2, window: '1h' }),
      })
      await limiter.consume('victim', { cost: 2 })
      for (let i = 0; i < 10_000; i += 1) {
        await limiter.consume(`flood-${i}`)
        expect(store.size).toBeLessThanOrEqual(1_000)
      }
      expect((await limiter.consume('victim')).allowed).toBe(false)
    },
  )

  it('that are all exhausted shares overflow buckets, and evicts none', async () => {
    const store = memoryStore({ maxKeys: 100 })
    const limiter = limiterOf({ store, limit: 1, window: '1h' })
    for (let i = 0; i < 100; i += 1) await limiter.consume(`held-${i}`)
    let admitted = 0
    for (let i = 0; i < 5_000; i += 1)
      if ((await limiter.consume(`new-${i}`)).allowed) admitted += 1
    expect(admitted).toBe(64)
    expect(store.size).toBe(100)
    for (let i = 0; i < 100; i += 1)
      expect((await limiter.consume(`held-${i}`)).allowed).toBe(false)
  })

  it('evicts expired keys first, then rarely used ones', async () => {
    const store = memoryStore({ maxKeys: 10 })
    const brief = limiterOf({ store, name: 'brief', limit: 10, window: '1s' })
    const long = limiterOf({ store, name: 'long', limit: 10, window: '1h' })
    for (let i = 0; i < 5; i += 1) await brief.consume(`brief-${i}`)
    for (let i = 0; i < 5; i += 1) await long.consume(`long-${i}`, { cost: 9 })
    vi.advanceTimersByTime(2_000)
    for (let i = 0; i < 200; i += 1) await long.consume(`light-${i}`)
    for (let i = 0; i < 5; i += 1)
      expect((await long.peek(`long-${i}`)).outcomes[0]?.remaining).toBe(1)
  })

  it('is swept away as others come, without a timer', async () => {
    const store = memoryStore()
    const limiter = limiterOf({ store, limit: 5, window: '1s' })
    for (let i = 0; i < 1_000; i += 1) await limiter.consume(`old-${i}`)
    vi.advanceTimersByTime(1_001)
    for (let i = 0; i < 1_000; i += 1) await limiter.consume(`new-${i}`)
    expect(store.size).toBeLessThanOrEqual(1_100)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('leaves nothing of requests that were denied, or cost nothing', async () => {
    const store = memoryStore()
    const limiter = limiterOf({ store, limit: 5, window: '1h' })
    for (let i = 0; i < 100; i += 1) {
      await limiter.consume(`dear-${i}`, { cost: 6 })
      await limiter.consume(`free-${i}`, { cost: 0 })
      await limiter.peek(`seen-${i}`)
    }
    expect(store.size).toBe(0)
  })
})

describe('keys', () => {
  it('of maximum length are distinct, and longer ones are rejected before any work', async () => {
    const store = memoryStore()
    const limiter = createLimiter({ store, limit: 1, window: '1h', penalty: { after: 'never' } })
    const long = 'k'.repeat(maxKeyLength - 1)
    expect((await limiter.consume(`${long}a`)).allowed).toBe(true)
    expect((await limiter.consume(`${long}b`)).allowed).toBe(true)
    expect((await limiter.consume(`${long}a`)).allowed).toBe(false)
    const apply = vi.spyOn(store, 'apply')
    const tooLong = `${long}ab`
    const message =
      'key must be a non-empty string of at most 16384 characters, but has 16385; give a digest of it instead'
    const methods = ['consume', 'peek', 'charge', 'reset'] as const
    const all = methods.map((method) => limiter[method](tooLong) as Promise<unknown>)
    for (const refused of [...all, limiter.block(tooLong, '1h')]) {
      await expect(refused).rejects.toMatchObject({ code: 'SLUICE_KEY_INVALID', message })
    }
    expect(apply).not.toHaveBeenCalled()
  })

  it('that are long are digested once for all policies of a request, and by the runtime', async () => {
    const hash = vi.spyOn(crypto, 'hash')
    const policies = ['a', 'b', 'c'].map((name) => ({ name, limit: 1, window: '1h' }) as const)
    const limiter = createLimiter({ policies, penalty: { after: 5, within: '1h', for: '1h' } })
    for (const [request, user] of ['ada', 'ada', 'bob', 'bob'].entries()) {
      const { allowed } = await limiter.consume(user.padStart(16_000, 'k'))
      expect(allowed).toBe(request % 2 === 0)
    }
    expect(hash).toHaveBeenCalledTimes(2)
    hash.mockRestore()
  })

  it('never collide, at any length around the bound', async () => {
    const unit = fc.constantFrom('a', '#', '\ud800', '\udc00')
    const text = fc.string({ minLength: 250, maxLength: 262, unit })
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(text, { minLength: 2 }), async (keys) => {
        const limiter = limiterOf({ limit: 1, window: '1h' })
        for (const key of keys) expect((await limiter.consume(key)).allowed).toBe(true)
      }),
    )
  })
})

describe('time', () => {
  it('may be 0', async () => {
    vi.setSystemTime(0)
    for (const algorithm of algorithmNames) {
      const limiter = limiterOf(algorithmPolicy(algorithm, { limit: 1, window: '1s' }))
      expect((await limiter.consume('k')).allowed).toBe(true)
      expect((await limiter.consume('k')).allowed).toBe(false)
    }
  })

  it('is read from Date.now at each call, and nothing else is', () => {
    vi.setSystemTime(5_000)
    for (const name of ['queueMicrotask', 'setImmediate', 'setTimeout', 'setInterval']) {
      vi.stubGlobal(name, () => expect.unreachable(name))
    }
    const nextTick = vi.spyOn(process, 'nextTick')
    const store = memoryStore()
    const check = checkOf(policyOf({ name: 'p', limit: 1, window: '1s' }))
    const consume = (): boolean | undefined => store.apply('consume', [check])[0]?.allowed
    expect([consume(), consume()]).toEqual([true, false])
    vi.setSystemTime(6_000)
    expect(consume()).toBe(true)
    expect(nextTick).not.toHaveBeenCalled()
    vi.unstubAllGlobals()
  })
})

describe('several checks in one request', () => {
  it('are all charged, even if one key is swept', () => {
    const store = memoryStore()
    const a = policyOf({ name: 'a', limit: 5, window: '1s' })
    const b = policyOf({ name: 'b', limit: 5, window: '1h' })
    for (let round = 0; round < 50; round += 1) {
      const checks = [checkOf(b, { key: `new-${round}` }), checkOf(a)]
      expect(store.apply('consume', checks).map(({ remaining }) => remaining)).toEqual([4, 4])
      expect(store.apply('peek', checks).map(({ remaining }) => remaining)).toEqual([4, 4])
      vi.advanceTimersByTime(1_500)
    }
  })

  it('refund only their own units when the clock is set back', () => {
    const store = memoryStore()
    const check = checkOf(policyOf({ name: 'p', limit: 5, window: '1m', resolution: '1m' }))
    store.apply('charge', [check])
    vi.advanceTimersByTime(1)
    const [charged] = store.apply('charge', [{ ...check, cost: 6 }])
    expect(charged?.receipt).toBeInstanceOf(Receipt)
    const { receipt } = charged ?? {}
    if (receipt) store.change({ op: 'refund', checks: [{ ...receipt.check, receipt }] })
    vi.setSystemTime(Date.now() - 60_007)
    expect(store.apply('consume', [{ ...check, cost: 0 }])[0]?.remaining).toBe(4)
  })
})

describe('a log of single units', () => {
  /** Takes units at so many moments, a millisecond apart. Returns what asks and gives back. */
  function taken(costs: readonly number[]) {
    const store = memoryStore()
    const check = checkOf(policyOf({ name: 'p', limit: 9, window: '1s' }))
    const receipts = costs.map((cost) => {
      const [outcome] = store.apply('consume', [{ ...check, cost }])
      vi.advanceTimersByTime(1)
      if (!outcome?.receipt) throw new Error('no receipt')
      return outcome.receipt
    })
    return {
      left: () => store.apply('peek', [check])[0]?.remaining,
      waits: () =>
        [5, 7, 8, 9].map((cost) => store.apply('peek', [{ ...check, cost }])[0]?.retryAfterMs),
      refund(index: number, cost: number) {
        const receipt = receipts[index] as Receipt
        const [isBack] = store.change({ op: 'refund', checks: [{ ...check, cost, receipt }] })
        return isBack
      },
    }
  }

  it.each([
    [0, [0, 997, 998, 999]],
    [1, [0, 996, 998, 999]],
    [2, [0, 996, 997, 999]],
    [3, [0, 996, 997, 998]],
  ])('refunds unit number %i and no other', (index, waits) => {
    const { left, waits: waited, refund } = taken([1, 1, 1, 1])
    expect(waited()).toEqual([0, 997, 998, 999])
    // There are no more units of that time, whatever a caller says.
    expect(refund(index, 5)).toBe(true)
    expect(refund(index, 1)).toBe(false)
    expect(left()).toBe(6)
    expect(waited()).toEqual(waits)
  })

  it('refunds a part, then the rest', () => {
    const { left, waits, refund } = taken([1, 3, 1])
    expect(refund(1, 2)).toBe(true)
    expect([left(), waits()]).toEqual([6, [0, 997, 998, 999]])
    expect(refund(1, 2)).toBe(true)
    expect(refund(0, 1)).toBe(true)
    expect(refund(2, 1)).toBe(true)
    expect([left(), waits()]).toEqual([9, [0, 0, 0, 0]])
  })

  it('stays exact for the largest limit, however many units it has counted', () => {
    const store = memoryStore()
    const [limit, part] = [2 ** 47 - 1, 2 ** 46 - 1]
    const check = checkOf(policyOf({ name: 'p', limit, window: '60ms' }), { cost: part })
    for (let i = 0; i < 300; i += 1) {
      const [outcome] = store.apply('consume', [check])
      expect(outcome?.remaining, `${i}`).toBe(i === 0 ? limit - part : limit - 2 * part)
      vi.advanceTimersByTime(30)
    }
  })
})
