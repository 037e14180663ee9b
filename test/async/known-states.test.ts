import { type Check, type CheckLimiter, type Decision, memoryStore } from '@sluice/core'
import { describe, expect, it, vi } from 'vitest'
import { beginEach, TroubledStore } from '../core/resilience/troubled-store.ts'
import { checkOf, type SomeOptions } from '../support/patient-limiter.ts'
import { storeThrough } from '../support/store-through.ts'

/** A store that finds a key by its digest, as Redis does. */
class DigestStore extends TroubledStore {
  readonly keys = { keyFor: (digest: string) => ({ key: digest, digest }) }
}

const quota = { name: 'a', limit: 100, window: '10m', algorithm: 'fixed-window' } as const
const policy = { ...quota, async: { maxUncounted: 20 } } as const
let store: TroubledStore

beginEach(() => {
  store = new DigestStore()
})

function limiterWith(options: SomeOptions = {}): CheckLimiter {
  return store.limiter({ policies: [policy], deadlineMs: 60_000, instances: 1, ...options })
}

type Own = Partial<Pick<Check, 'key' | 'cost' | 'limit'>>

function ask(limiter: CheckLimiter, own: Own = {}): Promise<Decision> | Decision {
  return limiter.decide([checkOf(limiter.policies[0], own)])
}

/** Whether the store has to be asked. Waits for the answer. */
async function asks(limiter: CheckLimiter, own: Own = {}): Promise<boolean> {
  const asked = ask(limiter, own)
  await asked
  return asked instanceof Promise
}

describe('the state that is known of a key', () => {
  it('decides for at most one window', async () => {
    const limiter = limiterWith()
    await vi.advanceTimersByTimeAsync(400_000)
    await asks(limiter)
    const { resetMs = 0 } = (await limiter.peek('k')).outcomes[0] ?? {}
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await limiter.peek('k')).toMatchObject({ outcomes: [{ resetMs: resetMs - 1_000 }] })
    expect(store.asked('peek')).toBe(0)
    await vi.advanceTimersByTimeAsync(599_000)
    expect(await asks(limiter)).toBe(true)
  })

  it('decides everything that fits, including the last unit', async () => {
    const limiter = limiterWith()
    await asks(limiter, { cost: 80 })
    expect(await asks(limiter, { cost: 20 })).toBe(false)
    expect(await asks(limiter)).toBe(true)
  })

  it.each<[string, (limiter: CheckLimiter) => unknown]>([
    ['a denial', (limiter) => ask(limiter, { cost: 101 })],
    ['a failure mode', askWithoutStore],
    ['a peek by digest', (limiter) => limiter.peek({ digest })],
  ])('is not learned from %s', async (_, first) => {
    const limiter = limiterWith()
    await first(limiter)
    expect(await asks(limiter)).toBe(true)
    expect(await asks(limiter)).toBe(false)
  })

  it('is not confused with a key that looks like its digest', async () => {
    const limiter = limiterWith()
    await asks(limiter, { key: digest })
    await limiter.peek({ digest })
    expect(store.asked('peek')).toBe(1)
  })

  it('is the later of two answers, in any order', async () => {
    const limiter = limiterWith()
    store.mood = 'hangs'
    const both = [ask(limiter, { cost: 10 }), ask(limiter, { cost: 20 })]
    const [first, second] = store.calls
    const counted = store.memory.apply('consume', first?.checks ?? [])
    second?.answer()
    await both[1]
    vi.spyOn(store.memory, 'apply').mockReturnValueOnce(counted)
    first?.answer()
    await both[0]
    expect(await limiter.peek('k')).toMatchObject({ outcomes: [{ remaining: 70 }] })
  })

  it('is dropped when its key is reset, and kept for others', async () => {
    const limiter = limiterWith({ policies: [policy, { name: 'q', limit: 9, window: '1m' }] })
    const [own] = limiter.policies
    const known = (key: string) => !(limiter.decide([checkOf(own, { key })]) instanceof Promise)
    for (const key of ['k', 'l']) await limiter.decide([checkOf(own, { key })])
    await limiter.reset('k')
    expect([known('k'), known('l')]).toEqual([false, true])
  })

  it('does not decide a limit of 0, a charge, or while the store is unavailable', async () => {
    const blocked = limiterWith({ policies: [{ ...policy, name: 'b', limit: 0 }] })
    for (let i = 0; i < 2; i += 1) expect(await ask(blocked)).toMatchObject({ allowed: false })
    const limiter = limiterWith()
    await asks(limiter)
    const charged = limiter.charge('k')
    expect(store.asked('charge')).toBe(1)
    await charged
    await store.cutOff(limiter)
    expect(await ask(limiter)).toMatchObject({ source: 'fallback' })
  })

  it('is kept for keys with uncounted units, however many others exist', async () => {
    const never = new Promise(() => undefined)
    const atOnce = storeThrough(memoryStore(), (op) => (op === 'charge' ? never : undefined))
    const limiter = limiterWith({ store: { ...atOnce, fleet: { instances: 3 } } })
    for (let i = 0; i < 2; i += 1) await ask(limiter)
    for (let i = 0; i < 20_002; i += 1) await ask(limiter, { key: `k${i}` })
    expect(limiter.storeHealth()).toMatchObject({ uncountedUnits: 1, uncountedBound: 60 })
    // Of the oldest one nothing is known any more, so that it takes no unit by itself.
    await ask(limiter, { key: 'k0' })
    expect(limiter.storeHealth()).toMatchObject({ uncountedUnits: 1 })
  })
})

describe('a charge', () => {
  it('is sent one at a time per key, with the largest limit of its requests', async () => {
    const limiter = limiterWith()
    await asks(limiter, { limit: 50 })
    store.moods = { charge: 'hangs', consume: 'hangs' }
    await ask(limiter, { limit: 50, cost: 10 })
    expect(store.of('charge')).toMatchObject([{ cost: 10, limit: 50 }])
    await ask(limiter, { limit: 50, cost: 2 })
    // The store is told of all units before it is asked.
    const asked = ask(limiter, { limit: 80 })
    expect(store.of('charge').map(({ cost }) => cost)).toEqual([10, 2])
    await ask(limiter, { limit: 50 })
    store.calls.at(-1)?.answer()
    await asked
    await ask(limiter, { limit: 80 })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(store.of('charge')).toHaveLength(2)
    store.moods = {}
    await store.release()
    await vi.advanceTimersByTimeAsync(5)
    expect(store.of('charge')[2]).toMatchObject({ cost: 2, limit: 80 })
    expect(limiter.storeHealth().uncountedUnits).toBe(0)
  })

  it.each(['hangs', 'rejects'] as const)('that %s ends what was known', async (mood) => {
    const limiter = limiterWith({ deadlineMs: 100 })
    await asks(limiter)
    store.moods = { charge: mood }
    await ask(limiter, { cost: 10 })
    await vi.advanceTimersByTimeAsync(100)
    store.moods = { charge: 'hangs' }
    for (let i = 0; i < 2; i += 1) await asks(limiter)
    await store.release()
    expect(await limiter.peek('k')).toMatchObject({ outcomes: [{ remaining: 87 }] })
  })

  it('is not sent for returned or free units', async () => {
    const limiter = limiterWith()
    await asks(limiter)
    for (const [cost, isBack] of [
      [3, true],
      [0, false],
    ] as const) {
      const decision = await ask(limiter, { cost })
      expect(await limiter.refund(decision)).toBe(isBack)
    }
    await vi.advanceTimersByTimeAsync(1_000)
    expect(store.calls.map(({ op }) => op)).toEqual(['consume'])
  })
})

const digest = 'abcdefghijklmnopqrstuv'

async function askWithoutStore(limiter: CheckLimiter): Promise<void> {
  store.mood = 'rejects'
  await ask(limiter)
  store.mood = 'answers'
  // The debt is paid first.
  for (const key of ['other', 'k']) await ask(limiter, { key })
}
