import {
  type Check,
  type CheckLimiter,
  type Decision,
  type MaybePromise,
  memoryStore,
  SluiceError,
  type Store,
} from '@sluice/core'
import { expect, it, vi } from 'vitest'
import { checkOf, type SomeOptions } from '../../support/patient-limiter.ts'
import { goneStore, storeThrough } from '../../support/store-through.ts'
import { beginEach, TroubledStore } from './troubled-store.ts'

let store: TroubledStore

beginEach(() => {
  store = new TroubledStore()
})

const limit = (options: SomeOptions = {}) => store.limiter({ window: '10m', ...options })

function checksOf(limiter: CheckLimiter, limitNow: number, cost = 1): Check[] {
  return [checkOf(limiter.policies[0], { cost, limit: limitNow })]
}

async function left(limiter: CheckLimiter, limitNow: number): Promise<number | undefined> {
  return store.memory.apply('peek', checksOf(limiter, limitNow))[0]?.remaining
}

it.each(['sliding-log', 'token-bucket', 'fixed-window', 'sliding-counter'] as const)(
  'a debt under a small limit keeps units taken under a larger one (%s)',
  async (algorithm) => {
    const limiter = limit({ algorithm })
    await limiter.decide(checksOf(limiter, 1_000, 1_000))
    await store.cutOff(limiter)
    await limiter.decide(checksOf(limiter, 5))
    await store.comeBack(limiter)
    expect(await left(limiter, 1_000)).toBeLessThan(70)
  },
)

it.each([1, 3])(
  'a refund reaches a unit whose debt the store refused 40,000 times, %i requests at once',
  async (atOnce) => {
    const refusal = new SluiceError('SLUICE_STORE_CHECK', 'this check alone')
    const limiter = limit({ store: storeThrough(memoryStore(), () => Promise.reject(refusal)) })
    const decision = await limiter.consume('k')
    for (let asked = 0; asked < 40_000; asked += atOnce) {
      await Promise.all(Array.from({ length: atOnce }, () => limiter.consume('k')))
    }
    expect(await limiter.refund(decision)).toBe(true)
    expect((await limiter.consume('k')).allowed).toBe(true)
  },
)

it('a debt from a small limit grows with units admitted by a larger one', async () => {
  const limiter = limit()
  await store.cutOff(limiter)
  for (let i = 0; i < 5; i += 1) await limiter.decide(checksOf(limiter, 5))
  for (let i = 0; i < 2_000; i += 1) await limiter.decide(checksOf(limiter, 1_000))
  await store.comeBack(limiter)
  expect(await left(limiter, 1_000)).toBe(0)
})

it("a charge in an outage is owed in full, even beyond one process's share", async () => {
  const limiter = limit({ limit: 100, instances: 4 })
  await store.cutOff(limiter)
  await limiter.charge('k', { cost: 80 })
  await store.comeBack(limiter)
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(20)
})

it('a charge is owed even if requests are refused, and kept if charged late', async () => {
  const limiter = limit({ failureMode: 'closed' })
  await limiter.peek('k')
  store.mood = 'hangs'
  const charged = limiter.charge('k', { cost: 2 })
  await vi.advanceTimersByTimeAsync(100)
  expect((await charged).allowed).toBe(true)
  store.calls.at(-1)?.answer()
  await store.cutOff(limiter)
  await limiter.charge('k', { cost: 3 })
  await store.comeBack(limiter)
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(5)
})

it('an observer may call a limiter of the same store in every event', async () => {
  let told = 0
  const onResilience = () => {
    told += 1
    void limiter.consume('may-i-log')
  }
  const limiter: CheckLimiter = limit({ observers: { onResilience } })
  await store.cutOff(limiter)
  await store.comeBack(limiter)
  expect(told).toBeLessThan(20)
  expect(limiter.storeHealth().isAway).toBe(false)
})

it('stores that share counts are one in an outage', async () => {
  const space = {}
  const limiters = Array.from({ length: 5 }, () => {
    const away: Store = { ...goneStore(memoryStore()), space }
    return limit({ store: away, instances: 1 })
  })
  let admitted = 0
  for (let i = 0; i < 20; i += 1) {
    for (const limiter of limiters) if ((await limiter.consume('k')).allowed) admitted += 1
  }
  expect(admitted).toBe(10)
})

it('a synchronous store recovers too', async () => {
  let isBroken = true
  const atOnce = storeThrough(memoryStore(), () => {
    if (isBroken) throw new Error('broken')
  })
  const limiter = limit({ store: atOnce })
  for (let i = 0; i < 4; i += 1) await limiter.consume('k')
  expect(limiter.storeHealth()).toMatchObject({ breaker: 'open', keysOwed: 1 })
  isBroken = false
  for (let i = 0; i < 10; i += 1) {
    await vi.advanceTimersByTimeAsync(1_000)
    await limiter.peek('k')
  }
  expect(limiter.storeHealth()).toMatchObject({ breaker: 'closed', isAway: false, keysOwed: 0 })
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(6)
})

it('a probe answered without a server does not count', async () => {
  const limiter = limit()
  await store.cutOff(limiter)
  const known = memoryStore()
  const { apply } = store
  store.apply = (op, checks) => known.apply(op, checks) as never
  await vi.advanceTimersByTimeAsync(1_000)
  for (let i = 0; i < 100; i += 1) await limiter.peek('denied')
  const states = store.events.flatMap((event) => (event.type === 'breaker' ? [event.state] : []))
  expect(states).toEqual(['open'])
  store.apply = apply
  await store.comeBack(limiter)
  expect(limiter.storeHealth().breaker).toBe('closed')
})

it('a refund of expired units does not reduce a newer debt', async () => {
  const limiter = limit({ window: '1s' })
  await store.cutOff(limiter)
  const old = await limiter.consume('k', { cost: 10 })
  await vi.advanceTimersByTimeAsync(2_000)
  store.mood = 'rejects'
  await limiter.consume('k', { cost: 10 })
  await limiter.refund(old)
  expect(limiter.storeHealth().keysOwed).toBeGreaterThan(0)
})

it('a store that returns nonsense has failed', async () => {
  const limiter = limit({
    store: { ...goneStore(store), apply: () => Promise.resolve(undefined as never) },
  })
  expect(await limiter.consume('k')).toMatchObject({ allowed: true, source: 'fallback' })
})

it('units that a bucket drained during an outage are not charged afterwards', async () => {
  const limiter = limit({ algorithm: 'leaky-bucket', window: '1s' })
  await store.cutOff(limiter)
  for (let i = 0; i < 270; i += 1) {
    expect((await limiter.consume('k')).delayMs).toBe(0)
    await vi.advanceTimersByTimeAsync(112)
  }
  store.mood = 'answers'
  await untilClosed(limiter)
  expect(store.calls.filter(({ op }) => op === 'charge').length).toBeLessThanOrEqual(1)
  expect(chargedUnits()).toBeLessThanOrEqual(1)
})

it('refunded units of a bucket larger than its limit are not charged', async () => {
  const limiter = limit({ algorithm: 'token-bucket', burst: 100 })
  await store.cutOff(limiter)
  for (let i = 0; i < 50; i += 1) await limiter.refund(await limiter.consume('k'))
  await limiter.consume('k', { cost: 3 })
  await store.comeBack(limiter)
  expect(chargedUnits()).toBe(3)
})

it("a charge beyond a bucket's share is owed, minus drained units", async () => {
  const limiter = limit({ algorithm: 'token-bucket', limit: 100_000, instances: 4 })
  await store.cutOff(limiter)
  await limiter.charge('k', { cost: 100_000 })
  await vi.advanceTimersByTimeAsync(60_000)
  store.mood = 'answers'
  await untilClosed(limiter)
  // 10,000 have drained at the store, and a quarter of that here.
  expect(chargedUnits()).toBe(97_500)
})

it('units of a request that timed out are reported to the store, even if the key is not used again', async () => {
  const [first, second] = [limit(), limit({ name: 'q' })]
  const request = {}
  await first.consume('k')
  await missed(() => first.decide(checksOf(first, 10), request))
  store.mood = 'answers'
  expect(second.decide(checksOf(second, 10, 4), request)).toMatchObject({ source: 'fallback' })
  await vi.advanceTimersByTimeAsync(0)
  expect(await left(second, 10)).toBe(6)
  expect(second.storeHealth().breaker).toBe('closed')
})

it('a lease granted too late for an admitted request is released', async () => {
  const policies = [{ name: 'p', algorithm: 'concurrency', limit: 10 }] as const
  const limiter = store.limiter({ policies, failureMode: 'open' })
  await limiter.peek('k')
  const { decision, call } = await missed(() => limiter.consume('k'))
  expect(decision.source).toBe('open')
  store.mood = 'answers'
  call?.answer()
  await vi.advanceTimersByTimeAsync(0)
  expect(await left(limiter, 10)).toBe(10)
})

it('the decisions of an outage are counted from its start', async () => {
  const limiter = limit()
  for (let i = 0; i < 5; i += 1) {
    store.mood = 'rejects'
    await limiter.consume('k')
    store.mood = 'answers'
    await limiter.consume('k')
  }
  await store.cutOff(limiter)
  await limiter.consume('k')
  await store.comeBack(limiter)
  const [over] = store.events.filter(({ type }) => type === 'fallback-left')
  // The third failure of `cutOff`, one more, and those who come back before the key does.
  expect(over?.type === 'fallback-left' ? over.decisions : Number.NaN).toBeLessThan(6)
})

it('a non-object does not identify a request', async () => {
  const limiter = limit()
  await limiter.consume('k')
  const { decision } = await missed(() => limiter.decide(checksOf(limiter, 10), 'r' as never))
  expect(decision.source).toBe('fallback')
})

it('a late answer keeps its charge if part of it has drained meanwhile', async () => {
  const limiter = limit({ algorithm: 'token-bucket', limit: 100, window: '1s' })
  await limiter.peek('k')
  const { call } = await missed(() => limiter.consume('k', { cost: 20 }))
  await vi.advanceTimersByTimeAsync(50)
  call?.answer()
  await vi.advanceTimersByTimeAsync(0)
  expect(store.asked('refund')).toBe(0)
  expect(await left(limiter, 100)).toBeLessThanOrEqual(85)
})

it("a refund of expired units takes nothing from others' common payment", async () => {
  const limiter = limit({ window: '10s' })
  await store.cutOff(limiter)
  const old = await limiter.consume('k')
  await vi.advanceTimersByTimeAsync(9_500)
  for (let i = 0; i < 3; i += 1) await limiter.consume('k')
  store.mood = 'answers'
  await untilClosed(limiter)
  await vi.advanceTimersByTimeAsync(1_000)
  const before = await left(limiter, 10)
  await limiter.refund(old)
  await vi.advanceTimersByTimeAsync(0)
  expect(await left(limiter, 10)).toBe(before)
  expect(before).toBeLessThanOrEqual(7)
})

it('a refund removes only what it gives back, even if the clock was set back', async () => {
  const limiter = limit({ algorithm: 'token-bucket', limit: 100, window: '1s' })
  await store.cutOff(limiter)
  await limiter.consume('k', { cost: 50 })
  const back = await limiter.consume('k')
  vi.setSystemTime(Date.now() - 1_000)
  await limiter.refund(back)
  store.mood = 'answers'
  await limiter.peek('nobody')
  expect(limiter.storeHealth().keysOwed).toBe(1)
})

it('a refund of paid units goes to the store, and does not reduce newer debts, at any number of requests', async () => {
  const limiter = limit({ limit: 500 })
  await store.cutOff(limiter)
  const [first] = await Promise.all(Array.from({ length: 150 }, () => limiter.consume('k')))
  await store.comeBack(limiter)
  expect(await left(limiter, 500)).toBe(350)
  await store.cutOff(limiter)
  await limiter.consume('k', { cost: 3 })
  if (first) await limiter.refund(first)
  await store.comeBack(limiter)
  expect(await left(limiter, 500)).toBe(348)
})

/** Asks a store that does not answer in time; the decision without it, and the call that it may answer later. */
async function missed(ask: () => MaybePromise<Decision>) {
  store.mood = 'hangs'
  const asked = ask()
  const call = store.calls.at(-1)
  await vi.advanceTimersByTimeAsync(100)
  return { decision: await asked, call }
}

async function untilClosed(limiter: CheckLimiter): Promise<void> {
  while (limiter.storeHealth().breaker !== 'closed') {
    await limiter.peek('nobody')
    await vi.advanceTimersByTimeAsync(10)
  }
}

function chargedUnits(): number {
  const charges = store.calls.filter(({ op }) => op === 'charge')
  return charges.reduce((sum, { checks }) => sum + (checks[0]?.cost ?? 0), 0)
}
