import {
  type Check,
  createLimiter,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type Outcome,
  type ResilienceEvent,
  type Store,
} from '@sluice/core'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { TroubledStore } from './troubled-store.ts'

let store: TroubledStore
let events: ResilienceEvent[]

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
  store = new TroubledStore()
  events = []
})

afterEach(() => {
  vi.useRealTimers()
})

function limit(options: Partial<LimiterOptions> = {}): Limiter {
  return createLimiter({
    name: 'p',
    limit: 10,
    window: '10m',
    store,
    onStoreError: () => undefined,
    onResilience: (event) => events.push(event),
    ...options,
  })
}

function checkOf(limiter: Limiter, limitNow: number, cost = 1): Check[] {
  const [policy] = limiter.policies
  if (!policy) throw new Error('a policy')
  return [{ policy, key: 'k', cost, limit: limitNow }]
}

async function cutOff(limiter: Limiter): Promise<void> {
  store.mood = 'rejects'
  for (let i = 0; i < 3; i += 1) await limiter.peek('nobody')
}

async function comeBack(limiter: Limiter): Promise<void> {
  store.mood = 'answers'
  for (let i = 0; i < 40; i += 1) {
    await vi.advanceTimersByTimeAsync(1_000)
    await limiter.peek('nobody')
  }
}

async function left(limiter: Limiter, limitNow: number): Promise<number | undefined> {
  const [policy] = limiter.policies
  const [check] = checkOf(limiter, limitNow)
  if (!policy || !check) throw new Error('a policy')
  return store.memory.apply('peek', [check])[0]?.remaining
}

it.each(['sliding-log', 'token-bucket', 'fixed-window', 'sliding-counter'] as const)(
  'a debt under a small limit erases nothing that was taken under a large one (%s)',
  async (algorithm) => {
    const limiter = limit({ algorithm })
    await limiter.decide(checkOf(limiter, 1_000, 1_000))
    await cutOff(limiter)
    await limiter.decide(checkOf(limiter, 5))
    await comeBack(limiter)
    expect(await left(limiter, 1_000)).toBeLessThan(70)
  },
)

it('a debt that began under a small limit grows with what a larger one lets in', async () => {
  const limiter = limit()
  await cutOff(limiter)
  for (let i = 0; i < 5; i += 1) await limiter.decide(checkOf(limiter, 5))
  for (let i = 0; i < 2_000; i += 1) await limiter.decide(checkOf(limiter, 1_000))
  await comeBack(limiter)
  expect(await left(limiter, 1_000)).toBe(0)
})

it('a charge in an outage is owed whole, though it is more than the share of one process', async () => {
  const limiter = limit({ limit: 100, instances: 4 })
  await cutOff(limiter)
  await limiter.charge('k', { cost: 80 })
  await comeBack(limiter)
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(20)
})

it('a charge is owed where requests are refused too, and kept when it was charged late', async () => {
  const limiter = limit({ failureMode: 'closed' })
  await limiter.peek('k')
  store.mood = 'hangs'
  const charged = limiter.charge('k', { cost: 2 })
  await vi.advanceTimersByTimeAsync(100)
  expect((await charged).allowed).toBe(true)
  store.calls.at(-1)?.answer()
  await cutOff(limiter)
  await limiter.charge('k', { cost: 3 })
  await comeBack(limiter)
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(5)
})

it('an observer may ask a limiter of the same store about every event', async () => {
  let told = 0
  const limiter = limit({
    onResilience: () => {
      told += 1
      void limiter.consume('may-i-log')
    },
  })
  await cutOff(limiter)
  await comeBack(limiter)
  expect(told).toBeLessThan(20)
  expect(limiter.storeHealth().isAway).toBe(false)
})

it('stores that count in one place are one in an outage', async () => {
  const space = {}
  const stores = Array.from({ length: 5 }, () => {
    const away: Store = {
      space,
      apply: () => Promise.reject(new Error('down')),
    }
    return away
  })
  const limiters = stores.map((away) => limit({ store: away, instances: 1 }))
  let admitted = 0
  for (let i = 0; i < 20; i += 1) {
    for (const limiter of limiters) if ((await limiter.consume('k')).allowed) admitted += 1
  }
  expect(admitted).toBe(10)
})

it('a store that answers at once comes back too', async () => {
  const memory = memoryStore()
  let isBroken = true
  const apply = (...asked: Parameters<typeof memory.apply>): readonly Outcome[] => {
    if (isBroken) throw new Error('broken')
    return memory.apply(...asked)
  }
  const limiter = limit({ store: { apply } })
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

it('a probe that the store answers without being asked is none', async () => {
  const limiter = limit()
  await cutOff(limiter)
  const known = memoryStore()
  const { apply } = store
  store.apply = (op, checks) => known.apply(op, checks) as never
  await vi.advanceTimersByTimeAsync(1_000)
  for (let i = 0; i < 100; i += 1) await limiter.peek('denied')
  const states = events.flatMap((event) => (event.type === 'breaker' ? [event.state] : []))
  expect(states).toEqual(['open'])
  store.apply = apply
  await comeBack(limiter)
  expect(limiter.storeHealth().breaker).toBe('closed')
})

it('a charge is not paid while it may be on its way already', async () => {
  const limiter = limit({ limit: 100 })
  await limiter.consume('k', { cost: 50 })
  store.mood = 'hangs'
  const late = limiter.consume('k', { cost: 50 })
  await vi.advanceTimersByTimeAsync(100)
  expect((await late).source).toBe('fallback')
  const [, asked] = store.calls
  store.mood = 'answers'
  await limiter.peek('other')
  await limiter.peek('k')
  expect(store.asked('charge')).toBe(0)
  asked?.answer()
  await vi.advanceTimersByTimeAsync(0)
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(0)
})

it('units whose ask was lost are owed for certain', async () => {
  const limiter = limit()
  await limiter.peek('k')
  store.mood = 'hangs'
  const late = limiter.consume('k', { cost: 4 })
  await vi.advanceTimersByTimeAsync(100)
  await late
  store.calls.at(-1)?.fail(new Error('connection lost'))
  store.mood = 'answers'
  await limiter.peek('other')
  await limiter.peek('k')
  await limiter.peek('k')
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(6)
})

it('a refund of what counts no more strikes no newer debt', async () => {
  const limiter = limit({ window: '1s' })
  await cutOff(limiter)
  const old = await limiter.consume('k', { cost: 10 })
  await vi.advanceTimersByTimeAsync(2_000)
  store.mood = 'rejects'
  await limiter.consume('k', { cost: 10 })
  await limiter.refund(old)
  expect(limiter.storeHealth().keysOwed).toBeGreaterThan(0)
})

it('a refund reaches what the store has been told of meanwhile', async () => {
  const limiter = limit()
  await cutOff(limiter)
  const [paid, kept] = [await limiter.consume('k', { cost: 4 }), await limiter.consume('k')]
  await comeBack(limiter)
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(5)
  expect(await limiter.refund(paid)).toBe(true)
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(9)
  expect(await limiter.refund(paid)).toBe(false)
  expect(kept.allowed).toBe(true)
})

it('a refund reaches what a late answer has kept', async () => {
  const limiter = limit()
  await limiter.peek('k')
  store.mood = 'hangs'
  const asked = limiter.consume('k', { cost: 4 })
  await vi.advanceTimersByTimeAsync(100)
  const decision = await asked
  store.mood = 'answers'
  store.calls.at(-1)?.answer()
  await vi.advanceTimersByTimeAsync(0)
  await limiter.refund(decision)
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(10)
})

it('a store that answers nonsense has failed', async () => {
  const limiter = limit({ store: { apply: () => Promise.resolve(undefined as never) } })
  expect(await limiter.consume('k')).toMatchObject({ allowed: true, source: 'fallback' })
})
