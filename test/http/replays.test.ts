import { memoryStore, type Store } from '@sluice/core'
import type { GuardOptions } from '@sluice/http'
import { describe, expect, it, vi } from 'vitest'
import { exchange, guardOf, now } from './exchange.ts'

const policy = { name: 'posts', limit: 8, window: '1m' } as const
const withKey = (key: string) => ({ header: () => key })

function guarded(options: Partial<GuardOptions<object>> = {}) {
  const quota = options.policies ? {} : policy
  const guard = guardOf({ ...quota, key: () => 'ada', idempotencyKey: true, ...options })
  return {
    guard,
    check: async (key: string) => (await guard.check(exchange(withKey(key)))).decision,
    left: async (key: string) =>
      (await guard.check(exchange(withKey(key)))).decision?.outcomes[0]?.remaining,
  }
}

const gone: Store = { apply: () => Promise.reject(new Error('gone')) }

describe('a guard with an idempotency key', () => {
  it('answers at once where nothing is async', () => {
    const { guard } = guarded()

    expect(now(guard.check(exchange(withKey('k')))).verdict.action).toBe('pass')
    expect(now(guard.check(exchange(withKey('k')))).verdict.action).toBe('pass')
  })

  it('asks the store once for a request without', () => {
    const store = memoryStore()
    const apply = vi.spyOn(store, 'apply')
    const { guard } = guarded({ store })
    now(guard.check(exchange()))

    expect(apply).toHaveBeenCalledTimes(1)
  })

  it('charges the first attempt also where a process decides with its share alone', async () => {
    const { left } = guarded({ store: gone, instances: 4, onStoreError: () => undefined })

    expect(await left('a')).toBe(1)
    expect(await left('b')).toBe(0)
  })

  it.each(['open', 'closed'] as const)(
    "follows failureMode '%s', and tells its observer",
    async (failureMode) => {
      const onDecision = vi.fn()
      const { check } = guarded({
        store: gone,
        failureMode,
        onDecision,
        onStoreError: () => undefined,
      })

      expect((await check('k'))?.source).toBe(failureMode)
      expect((await check('k'))?.source).toBe(failureMode)
      expect(onDecision).toHaveBeenCalledTimes(2)
    },
  )

  it('takes the longest window of its policies, and nothing of those in shadow', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 })
    const policies = [
      { name: 'burst', limit: 5, window: '1s' },
      { name: 'day', limit: 5, window: '1d' },
    ] as const
    const onShadow = vi.fn()
    const shadow = { name: 'new', limit: 5, window: '1m', mode: 'shadow' } as const
    const { check } = guarded({ policies: [...policies, shadow], onShadow })
    await check('k')
    vi.setSystemTime(1_000_000 + 3_600_000)
    const retry = await check('k')
    vi.useRealTimers()

    expect(retry?.outcomes.map(({ remaining }) => remaining)).toEqual([5, 4])
    const seen = onShadow.mock.calls.map(([{ outcomes }]) => outcomes[0].remaining)
    expect(seen).toEqual([4, 5])
  })

  it('is switched off for a route', async () => {
    const { guard } = guarded({ routes: { '/login': { idempotencyKey: false } } })
    const remaining = async () =>
      (await guard.check(exchange({ ...withKey('k'), path: '/login' }))).decision?.outcomes[0]
        ?.remaining

    expect([await remaining(), await remaining()]).toEqual([7, 6])
  })
})
