import { memoryStore } from '@sluice/core'
import type { GuardFields } from '@sluice/http'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { raise } from '../support/raise.ts'
import { exchange, guardOf, now } from './exchange.ts'

const leases = { algorithm: 'concurrency', limit: 2, lease: '30s' } as const

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }))
afterEach(() => void vi.useRealTimers())

function guarded(options: GuardFields<object> = {}) {
  const store = { ...memoryStore() }
  const change = vi.spyOn(store, 'change')
  const guard = guardOf({ ...(options.policies ? {} : leases), store, ...options })
  return {
    guard,
    check: () => now(guard.check(exchange())),
    asked: (op: string) => change.mock.calls.filter(([made]) => made.op === op).length,
    change,
  }
}

describe('a passage with leases', () => {
  it('releases them once, even if others do too', async () => {
    const { guard, check, asked } = guarded()
    const { decision, hold } = check()
    if (decision) expect(await guard.limiter.release(decision)).toBe(true)
    hold?.finish(200)
    hold?.abort()

    expect(asked('release')).toBe(1)
    const actions = [check(), check(), check()].map(({ verdict }) => verdict.action)
    expect(actions).toEqual(['pass', 'pass', 'reject'])
  })

  it.each<[string, GuardFields<object>]>([
    ['was refused', { limit: 0 }],
    ['cost nothing', { cost: 0 }],
    ['was skipped', { skip: () => true }],
    ['meets no such policy', { policies: [{ limit: 1, window: '1m' }] }],
  ])('holds none when it %s', (_, options) => {
    const { check } = guarded(options)
    expect(check().hold).toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  it("sends the policy's wait, or none with limit 0", () => {
    const wait = (limit: number) => {
      const { check } = guarded({ limit, retryAfter: '7s' })
      check()
      return Object.fromEntries(check().verdict.fields)['Retry-After']
    }
    expect([wait(1), wait(0)]).toEqual(['7', undefined])
  })

  it('leaves nothing unhandled when the store fails to release them', async () => {
    const onStoreError = vi.fn()
    const { check, change } = guarded({ observers: { onStoreError } })
    const { hold } = check()
    change.mockImplementation(() => raise('gone'))
    hold?.finish(200)
    await vi.advanceTimersByTimeAsync(0)

    expect(onStoreError).toHaveBeenCalledTimes(1)
  })
})

describe('renewal', () => {
  it('continues as long as the request, three times per lease', async () => {
    const { check, asked } = guarded()
    const passages = [check(), check()]
    await vi.advanceTimersByTimeAsync(300_000)

    expect(asked('renew')).toBe(2 * 30)
    expect(check().verdict.action).toBe('reject')
    for (const { hold } of passages) hold?.finish(200)
    expect(check().verdict.action).toBe('pass')
  })

  it('covers the remaining leases, in whatever order others end', async () => {
    const { check, asked } = guarded({ limit: 4 })
    const [first, second, third, fourth] = [check(), check(), check(), check()]
    second.hold?.finish(200)
    first.hold?.abort()
    second.hold?.finish(200)
    await vi.advanceTimersByTimeAsync(10_500)
    expect(asked('renew')).toBe(2)

    fourth.hold?.finish(200)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(asked('renew')).toBe(3)
    third.hold?.finish(200)
    expect(asked('release')).toBe(4)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('uses one timer, which runs only while leases are open', () => {
    const { check } = guarded({ limit: 100 })
    expect(vi.getTimerCount()).toBe(0)
    const passages = Array.from({ length: 100 }, check)

    expect(vi.getTimerCount()).toBe(1)
    for (const { hold } of passages.slice(1)) hold?.finish(200)
    expect(vi.getTimerCount()).toBe(1)
    passages[0]?.hold?.abort()
    expect(vi.getTimerCount()).toBe(0)
    check()
    expect(vi.getTimerCount()).toBe(1)
  })

  it('is as frequent as the shortest lease needs', async () => {
    const policies = [
      { ...leases, name: 'long' },
      { ...leases, lease: '3s', name: 'short' },
    ] as const
    const { check, asked } = guarded({ policies })
    check()
    await vi.advanceTimersByTimeAsync(9_500)

    expect(asked('renew')).toBe(9)
  })

  it('never overflows a timer, however long a lease is', async () => {
    const { check, asked } = guarded({ lease: '3650d' })
    check()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(asked('renew')).toBe(0)
  })

  it('survives a store that fails for less than a lease, with nothing unhandled', async () => {
    const onStoreError = vi.fn()
    const { check, change } = guarded({ limit: 1, observers: { onStoreError } })
    const { hold } = check()
    change.mockImplementationOnce(() => raise('gone'))
    await vi.advanceTimersByTimeAsync(100_000)

    expect(onStoreError).toHaveBeenCalledTimes(1)
    expect(check().verdict.action).toBe('reject')
    hold?.finish(200)
    expect(check().verdict.action).toBe('pass')
  })

  it('soon stops calling a store that does not answer', async () => {
    const { check, change, asked } = guarded()
    check()
    change.mockImplementation(() => new Promise(() => undefined) as never)
    await vi.advanceTimersByTimeAsync(100_000)
    expect(asked('renew')).toBe(3)
  })
})
