import { createCheckLimiter } from '@sluice/core'
import { describe, expect, it, vi } from 'vitest'
import { checkOf, type SomeOptions } from '../../support/patient-limiter.ts'
import { beginEach, TroubledStore } from './troubled-store.ts'

let store: TroubledStore

beginEach(() => {
  store = new TroubledStore()
})

const limit = (options: SomeOptions = {}) => {
  const penalty = { after: 3, within: '1m', for: '5m' } as const
  return store.limiter({ limit: 2, window: '10s', penalty, ...options })
}

describe('while the store is away', () => {
  it.each([1, 10])(
    'the configured number of denials leads to a block, with %i instances',
    async (instances) => {
      const limiter = limit({ instances, limit: 2 * instances })
      await store.cutOff(limiter)
      for (const [remaining, retryAfterMs] of [[3], [3], [2], [1], [0, 300_000]]) {
        const outcomes = [{}, { remaining, retryAfterMs: retryAfterMs ?? 0 }]
        expect(await limiter.consume('k')).toMatchObject({ source: 'fallback', outcomes })
      }
    },
  )

  it('blocks set or seen by this process remain', async () => {
    const limiter = limit()
    await limiter.block('set', '1h')
    for (let i = 0; i < 5; i += 1) await limiter.consume('seen')
    await store.cutOff(limiter)
    const denied = { allowed: false, source: 'fallback' }
    expect(await limiter.consume('set')).toMatchObject({ ...denied, retryAfterMs: 3_600_000 })
    expect(await limiter.consume('seen')).toMatchObject({ ...denied, retryAfterMs: 300_000 })
    expect((await limiter.consume('other')).allowed).toBe(true)
    await vi.advanceTimersByTimeAsync(300_000)
    store.mood = 'rejects'
    expect(await limiter.consume('seen')).toMatchObject({ allowed: true, source: 'fallback' })
  })

  it('a block that was lifted does not come back', async () => {
    const limiter = limit()
    await limiter.block('k', '1h')
    await limiter.consume('k')
    await limiter.reset('k')
    await store.cutOff(limiter)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, source: 'fallback' })
  })

  it('admitted requests are owed as units, never as strikes', async () => {
    const limiter = limit()
    await store.cutOff(limiter)
    for (let i = 0; i < 2; i += 1) await limiter.consume('k')
    expect(limiter.storeHealth().keysOwed).toBe(1)
    await store.comeBack(limiter)
    expect(limiter.storeHealth().keysOwed).toBe(0)
    expect((await limiter.peek('k')).outcomes[1]).toMatchObject({ remaining: 3 })
  })

  it("what 'closed' refuses is no strike", async () => {
    const limiter = limit({ failureMode: 'closed' })
    await store.cutOff(limiter)
    for (let i = 0; i < 20; i += 1) expect((await limiter.consume('k')).source).toBe('closed')
    await store.comeBack(limiter)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, source: 'store' })
    expect((await limiter.peek('k')).outcomes[1]).toMatchObject({ remaining: 3 })
  })

  it('a penalty follows the failure mode of the policies', async () => {
    const quota = { name: 'q', limit: 1, window: '1m', failureMode: 'open' } as const
    const penalty = { after: 1, within: '1m', for: '1h' } as const
    const limiter = store.limiter({ policies: [quota], penalty })
    await store.cutOff(limiter)
    for (let i = 0; i < 9; i += 1) {
      expect(await limiter.consume('k')).toMatchObject({ allowed: true, source: 'open' })
    }
  })

  it("a penalty alone follows the limiter's failure mode", async () => {
    const limiter = createCheckLimiter({
      store,
      penalty: { after: 'never' },
      observers: { onStoreError: () => undefined },
    })
    await limiter.block('k', '1h')
    await store.cutOff(limiter)
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, source: 'fallback' })
    expect(await limiter.consume('other')).toMatchObject({ allowed: true, source: 'fallback' })
  })
})

it('a block is not lifted by unconditional charges', async () => {
  const limiter = limit({ limit: 100 })
  await limiter.block('k', '30d')
  expect((await limiter.consume('k')).allowed).toBe(false)
  limiter.strike(checkOf(limiter.penalty))
  await vi.advanceTimersByTimeAsync(0)
  await store.cutOff(limiter)
  expect(await limiter.consume('k')).toMatchObject({ source: 'fallback', allowed: false })
})

it('a block lifted by the store does not apply without it', async () => {
  const limiter = limit({ limit: 100 })
  await limiter.block('k', '30d')
  expect((await limiter.consume('k')).allowed).toBe(false)
  // By another process.
  store.memory.change({ op: 'reset', checks: [checkOf(limiter.penalty)] })
  expect((await limiter.consume('k')).allowed).toBe(true)
  await store.cutOff(limiter)
  expect(await limiter.consume('k')).toMatchObject({ source: 'fallback', allowed: true })
})
