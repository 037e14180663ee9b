import { type CheckLimiter, type Decision, memoryStore, type PolicyOptions } from '@sluice/core'
import { describe, expect, it, vi } from 'vitest'
import { checkOf, type SomeOptions } from '../../support/patient-limiter.ts'
import { beginEach, TroubledStore } from './troubled-store.ts'

let store: TroubledStore

beginEach(() => {
  store = new TroubledStore()
})

const limit = (options: SomeOptions = {}) => store.limiter(options)

function pass(ms: number): Promise<unknown> {
  return vi.advanceTimersByTimeAsync(ms)
}

async function cutOff(limiter: CheckLimiter): Promise<void> {
  await store.cutOff(limiter)
  store.events.length = 0
}

function types(): string[] {
  return store.events.map((event) =>
    event.type === 'breaker' ? `breaker ${event.state}` : event.type,
  )
}

describe('a deadline', () => {
  it('releases a request after 100 ms, by the failure mode', async () => {
    const onStoreError = vi.fn()
    const limiter = limit({ observers: { onStoreError } })
    store.mood = 'hangs'
    const decided = vi.fn()
    void limiter.consume('k').then(decided)
    await pass(99)
    expect(decided).not.toHaveBeenCalled()
    await pass(1)
    expect(decided).toHaveBeenCalledWith(expect.objectContaining({ source: 'fallback' }))
    expect(onStoreError.mock.calls[0]?.[0].error.code).toBe('SLUICE_STORE_DEADLINE')
    expect(store.events).toEqual([{ type: 'deadline-missed', checks: 1 }])
  })

  it('delays a request once, however many limiters it passes', async () => {
    const [first, second] = [limit(), limit({ name: 'q' })]
    const [one, two] = [first, second].map(({ policies: [policy] }) => [checkOf(policy)])
    const [request, other] = [{}, {}]
    await first.consume('k')
    store.mood = 'hangs'
    const missed = first.decide(one ?? [], request)
    await pass(100)
    await missed
    const expected = { source: 'fallback', outcomes: [{ remaining: 9 }] }
    expect(second.decide(two ?? [], request)).toMatchObject(expected)
    expect(store.asked('consume')).toBe(2)
    expect(second.decide(two ?? [], other)).toBeInstanceOf(Promise)
  })

  it('is as long as it is set, for each limiter of a store', async () => {
    const [short, long] = [limit({ deadlineMs: 5 }), limit({ deadlineMs: 300 })]
    store.mood = 'hangs'
    const order: string[] = []
    void long.consume('k').then(() => order.push('long'))
    void short.consume('k').then(() => order.push('short'))
    await pass(5)
    expect(order).toEqual(['short'])
    await pass(295)
    expect(order).toEqual(['short', 'long'])
  })

  it('cancels checks at the store that were already answered', async () => {
    const limiter = limit()
    await limiter.consume('k')
    store.mood = 'hangs'
    const decision = limiter.consume('k')
    await pass(100)
    await decision
    expect(store.calls.at(-1)?.cancellation?.isUnwanted).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('rejects a reset, and lets a refund go', async () => {
    const limiter = limit()
    const decision = await limiter.consume('k')
    store.mood = 'hangs'
    const reset = limiter.reset('k')
    const refund = limiter.refund(decision)
    const rejected = expect(reset).rejects.toMatchObject({ code: 'SLUICE_STORE_DEADLINE' })
    await pass(100)
    expect(await refund).toBe(false)
    // A change has time for the round trips to a distant store.
    await pass(900)
    await rejected
  })

  it.each([0, Number.NaN, 0.5, 60_001, '100'])('cannot be %s', (deadlineMs) => {
    expect(() => limit({ deadlineMs: deadlineMs as number })).toThrow(/^deadlineMs must be/)
  })
})

describe('the breaker', () => {
  it('opens with the third incident, and releases all waiting requests', async () => {
    const limiter = limit()
    store.mood = 'hangs'
    const decisions: Promise<Decision>[] = []
    for (let i = 0; i < 20; i += 1) {
      decisions.push(limiter.consume(`k${i}`))
      await pass(10)
    }
    await Promise.all(decisions)
    // Deadlines passed at 100, 110 and 120 ms; the twelve that had asked by then were the last.
    expect(store.asked('consume')).toBe(12)
    const opening = ['deadline-missed', 'fallback-entered', 'breaker open', 'deadline-missed']
    expect(types()).toEqual(['deadline-missed', ...opening])
  })

  it('costs no limiter of the store a call or a wait while it is open', async () => {
    await cutOff(limit())
    store.mood = 'hangs'
    const asked = store.calls.length
    const decision = await limit().consume('k')
    expect(decision).toMatchObject({ allowed: true, source: 'fallback' })
    expect(store.calls).toHaveLength(asked)
  })

  it('lets one request probe, and only that one wait', async () => {
    const limiter = limit()
    await cutOff(limiter)
    store.mood = 'hangs'
    await pass(500)
    const asked = store.calls.length
    const probe = vi.fn()
    void limiter.consume('k').then(probe)
    expect(await limiter.consume('k')).toMatchObject({ source: 'fallback' })
    expect(store.calls).toHaveLength(asked + 1)
    expect(probe).not.toHaveBeenCalled()
    await pass(100)
    expect(probe).toHaveBeenCalled()
    expect(types()).toEqual(['breaker half-open', 'breaker open', 'deadline-missed'])
  })
})

describe('the return', () => {
  it('is gradual: key by key within three seconds', async () => {
    const limiter = limit()
    await cutOff(limiter)
    await pass(3_000)
    store.mood = 'answers'
    await limiter.peek('nobody')
    expect(types()).toEqual(['breaker half-open', 'breaker closed'])
    const keys = Array.from({ length: 200 }, (_, index) => `k${index}`)
    const back = async (): Promise<number> => {
      const sources = await Promise.all(keys.map(async (key) => (await limiter.peek(key)).source))
      return sources.filter((source) => source === 'store').length
    }
    const shares: number[] = []
    for (let i = 0; i < 4; i += 1) {
      shares.push(await back())
      await pass(600)
    }
    expect(shares).toEqual([...shares].sort((a, b) => a - b))
    expect(shares[0]).toBeLessThan(20)
    expect(shares[1]).toBeGreaterThan(20)
    expect(shares[2]).toBeLessThan(180)
    await pass(600)
    expect(await back()).toBe(200)
    expect(store.events.at(-1)).toMatchObject({ type: 'fallback-left' })
  })

  it('takes no longer than the outage', async () => {
    const limiter = limit()
    await cutOff(limiter)
    store.mood = 'answers'
    await pass(100)
    store.reconnect()
    await limiter.peek('nobody')
    await pass(130)
    expect(limiter.storeHealth().isAway).toBe(false) // No request has noticed.
    await pass(60_000)
    await limiter.peek('nobody')
    expect(Object(store.events.at(-1)).durationMs).toBeLessThan(1_000)
  })

  it('charges nothing that has expired since', async () => {
    const limiter = limit({ window: '1s' })
    await cutOff(limiter)
    for (let i = 0; i < 4; i += 1) await limiter.consume('k')
    await store.comeBack(limiter)
    expect(types()).not.toContain('reconciled')
  })

  it('charges the part of the units that still counts', async () => {
    const limiter = limit({ window: '20s' })
    await cutOff(limiter)
    for (let i = 0; i < 3; i += 1) await limiter.consume('k')
    await pass(19_000)
    for (let i = 0; i < 2; i += 1) await limiter.consume('k')
    await pass(2_000)
    await store.comeBack(limiter)
    expect(store.of('charge')).toMatchObject([{ key: 'k', cost: 2 }])
  })

  it('charges a key before it is used again', async () => {
    const limiter = limit({ limit: 5 })
    await cutOff(limiter)
    for (let i = 0; i < 5; i += 1) await limiter.consume('k')
    store.mood = 'answers'
    await pass(500)
    await limiter.peek('nobody')
    await pass(3_000)
    expect((await limiter.consume('k')).allowed).toBe(false)
  })

  it('does not overload a store that rejects debts', async () => {
    const limiter = limit()
    await cutOff(limiter)
    for (let i = 0; i < 4; i += 1) await limiter.consume('k')
    store.mood = 'hangs'
    await pass(500)
    void limiter.peek('nobody')
    store.mood = 'rejects'
    store.calls.at(-1)?.answer()
    await pass(1_000)
    expect(store.asked('charge')).toBe(1)
  })

  it('runs at most a hundred concurrently', async () => {
    const limiter = limit({ limit: 1_000 })
    const decisions = await Promise.all(Array.from({ length: 250 }, () => limiter.consume('k')))
    await cutOff(limiter)
    for (const decision of decisions) await limiter.refund(decision)
    store.mood = 'hangs'
    await pass(500)
    void limiter.peek('nobody')
    const answered = (): void => {
      for (const call of store.calls) call.answer()
    }
    for (const refunds of [0, 100, 200, 250, 250]) {
      expect(store.asked('refund')).toBe(refunds)
      answered()
      await pass(0)
    }
    await store.comeBack(limiter)
    expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(1_000)
  })
})

describe('a reset', () => {
  it('rejects immediately while the store is unavailable, and resets nothing', async () => {
    const limiter = limit({ limit: 2 })
    await cutOff(limiter)
    await limiter.consume('k', { cost: 2 })
    const asked = store.calls.length
    await expect(limiter.reset('k')).rejects.toMatchObject({ code: 'SLUICE_NOT_DONE' })
    expect(store.calls).toHaveLength(asked)
    expect((await limiter.consume('k')).allowed).toBe(false)
  })

  it.each([
    ['reset', 0],
    ['block', 1],
  ] as const)('a successful %s instead leaves %i debts', async (op, debts) => {
    const penalty = { after: 'never', name: 'bans' } as const
    const limiter = limit({ limit: 2, penalty })
    store.mood = 'rejects'
    await limiter.consume('k', { cost: 2 })
    store.mood = 'answers'
    expect(limiter.storeHealth()).toMatchObject({ isAway: false, keysOwed: 1 })
    await (op === 'reset' ? limiter.reset('k') : limiter.block('k', '1m'))
    expect(limiter.storeHealth().keysOwed).toBe(debts)
  })

  it('is one incident with others that are late at the same time', async () => {
    const limiter = store.limiter()
    store.moods = { reset: 'hangs' }
    const resets = ['a', 'b', 'c'].map((key) => limiter.reset(key).catch(String))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await resets[2]).toMatch('the store did not answer within 1000 ms')
    expect(limiter.storeHealth().breaker).toBe('closed')
  })

  it('also resets local counts', async () => {
    const limiter = limit({ limit: 2 })
    await cutOff(limiter)
    await limiter.consume('k', { cost: 2 })
    await store.comeBack(limiter)
    await limiter.reset('k')
    await cutOff(limiter)
    expect((await limiter.consume('k')).allowed).toBe(true)
  })
})

describe('an answer that comes late', () => {
  it('is refunded if the request was refused', async () => {
    const limiter = limit({ failureMode: 'closed' })
    await limiter.peek('nobody')
    store.mood = 'hangs'
    const decision = limiter.consume('k')
    await pass(100)
    expect((await decision).allowed).toBe(false)
    await store.answerLate()
    expect(store.events.at(-1)).toEqual({ type: 'late-reply', charge: 'refunded' })
    expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(10)
  })
})

describe('the share of one process', () => {
  async function admitted(limiter: CheckLimiter, most: number): Promise<number> {
    await cutOff(limiter)
    let count = 0
    for (let i = 0; i < most; i += 1) if ((await limiter.consume('k')).allowed) count += 1
    return count
  }

  it.each([
    [10, 4, 2],
    [3, 4, 1],
    [0, 4, 0],
    [10, 1, 10],
  ])('of %i among %i is %i', async (quota, instances, share) => {
    expect(await admitted(limit({ limit: quota, instances }), 20)).toBe(share)
  })

  it('applies to a burst and a queue too', async () => {
    const bucket = limit({ name: 'b', algorithm: 'token-bucket', burst: 40, instances: 4 })
    expect(await admitted(bucket, 60)).toBe(10)
    store = new TroubledStore()
    const plain = limit({ name: 'c', algorithm: 'token-bucket', limit: 40, instances: 4 })
    expect(await admitted(plain, 60)).toBe(10)
    store = new TroubledStore()
    const queue = limit({ name: 'q', algorithm: 'leaky-bucket', queue: 8, instances: 4 })
    expect(await admitted(queue, 60)).toBe(3)
  })

  it('is invisible to clients, who see the policy, and may retry a cost that fits it', async () => {
    const limiter = limit({ algorithm: 'token-bucket', burst: 40, instances: 4 })
    const [policy] = limiter.policies
    await cutOff(limiter)
    const waits = [20, 40, 41].map(
      async (cost) => (await limiter.consume('j', { cost })).retryAfterMs,
    )
    expect(await Promise.all(waits)).toEqual([5_000, 5_000, Number.POSITIVE_INFINITY])
    const { outcomes } = await limiter.consume('k')
    expect(outcomes).toMatchObject([{ limit: 2, remaining: 2, receipt: { home: {} } }])
    expect(outcomes[0]?.policy).toBe(policy)
  })

  it('has leases that are renewed and released locally', async () => {
    const lease = { algorithm: 'concurrency', limit: 4, lease: '5s' } as const
    const limiter = limit({ policies: [{ name: 'l', ...lease }], instances: 2 })
    await cutOff(limiter)
    const decisions = [await limiter.consume('k'), await limiter.consume('k')]
    expect((await limiter.consume('k')).allowed).toBe(false)
    const [first, second] = decisions as [Decision, Decision]
    await pass(4_000)
    expect(await limiter.renew(first)).toBe(true)
    await pass(2_000)
    expect(await limiter.renew(second)).toBe(false)
    expect((await limiter.consume('k')).allowed).toBe(true)
    expect((await limiter.consume('k')).allowed).toBe(false)
    expect(await limiter.release(first)).toBe(true)
    expect(await limiter.release(first)).toBe(false)
    expect((await limiter.consume('k')).allowed).toBe(true)
    expect(limiter.storeHealth().keysOwed).toBe(0)
  })

  it.each([0, 1.5, Number.NaN, '4'])('does not apply to a fleet of %s', (n) => {
    expect(() => limit({ instances: n as number })).toThrow(/^instances must be/)
  })
})

describe('failure modes of policies', () => {
  function failing(modes: readonly PolicyOptions['failureMode'][], own: SomeOptions = {}) {
    const rate = { limit: 1, window: '1m' } as const
    const policies = modes.map((failureMode, at) => ({ name: `p${at}`, ...rate, failureMode }))
    return limit({ policies, ...own })
  }

  it.each<[PolicyOptions['failureMode'][], SomeOptions, string]>([
    [['open', 'closed'], {}, 'closed'],
    [['open', 'fallback'], {}, 'fallback'],
    [['fallback', 'closed'], {}, 'closed'],
    [['open', 'open'], {}, 'open'],
    [['open', undefined], {}, 'fallback'],
    [['open', undefined], { failureMode: 'closed' }, 'closed'],
  ])('%j beside %j: the strictest counts, %s', async (modes, own, source) => {
    store.mood = 'rejects'
    expect((await failing(modes, own).consume('k')).source).toBe(source)
  })

  it('are checked', () => {
    expect(() => failing(['ajar' as never])).toThrow(
      "policies[0].failureMode must be one of 'fallback', 'open', 'closed', but is 'ajar'",
    )
  })
})

describe('a fallback of the user', () => {
  it('counts for all limiters of the store, within its bound', async () => {
    const fallback = memoryStore({ maxKeys: 3 })
    const [one, two] = [limit({ fallback }), limit({ fallback })]
    await cutOff(one)
    for (let i = 0; i < 10; i += 1) await two.consume(`k${i}`)
    expect(fallback.size).toBe(3)
    expect(() => limit({ fallback: memoryStore() })).toThrow(/^fallback: another limiter/)
  })

  it.each([[{}], [new TroubledStore()], [null], ['memory']])('cannot be %o', (fallback) => {
    expect(() => limit({ fallback: fallback as never })).toThrow(/^fallback must be a memoryStore/)
  })

  it('cannot be the store itself', () => {
    const store = memoryStore()
    const make = () => limit({ store, fallback: store })
    expect(make).toThrow(/^fallback must be a memoryStore\(\) other than the store/)
  })
})

describe('the health of a store', () => {
  it('is available at any time, with counters that only grow', async () => {
    const limiter = limit()
    store.fleet.instances = 3
    await limiter.consume('k')
    expect(limiter.storeHealth()).toEqual({
      ...{ breaker: 'closed', isAway: false, instances: 3, clockSkewMs: 0, keysOwed: 0 },
      ...{ uncountedUnits: 0, uncountedBound: 0, hotKeys: 0 },
      counters: {
        ...{ deadlinesMissed: 0, breakerOpened: 0, fallbacksEntered: 0, decisionsWithout: 0 },
        ...{ lateKept: 0, lateRefunded: 0, unitsReconciled: 0, clockSkews: 0 },
      },
      grants: { taken: 0, spent: 0, returned: 0, lapsed: 0 },
    })
    store.mood = 'hangs'
    const asked = ['a', 'b', 'c'].map((key) => limiter.consume(key, { cost: 2 }))
    await pass(100)
    await Promise.all(asked)
    store.mood = 'rejects'
    for (let i = 0; i < 2; i += 1) await limiter.consume('d')
    expect(limiter.storeHealth()).toMatchObject({ breaker: 'open', isAway: true, keysOwed: 4 })
    store.calls[1]?.answer()
    await store.comeBack(limiter)
    expect(types()).toContain('reconciled')
    expect(limiter.storeHealth()).toMatchObject({
      ...{ breaker: 'closed', isAway: false, keysOwed: 0 },
      counters: {
        ...{ deadlinesMissed: 3, breakerOpened: 1, fallbacksEntered: 1 },
        ...{ lateKept: 1, lateRefunded: 0, unitsReconciled: 6 },
      },
    })
  })
})
