import { createLimiter, memoryStore } from '@sluice/core'
import type { GuardFields } from '@sluice/http'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { exchange, guardOf, now } from './exchange.ts'

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }))
afterEach(() => void vi.useRealTimers())

const asksCors = new Map([
  ['origin', 'https://a.example'],
  ['access-control-request-method', 'POST'],
])

/** A guard of two requests a minute, and requests in the shape of preflights. */
function guarded(options: Partial<GuardFields<object>> = {}) {
  const policy = { name: 'p', limit: 2, window: '1m' } as const
  const store = memoryStore()
  const guard = guardOf({ ...policy, store, ...options })
  const limiter = createLimiter({ ...policy, store })
  return {
    used: async () => 2 - ((await limiter.peek('@ip/203.0.113.9')).outcomes[0]?.remaining ?? 0),
    ask(ip = '203.0.113.9', before: Record<string, string> = {}) {
      const asked = exchange({ method: 'OPTIONS', ip, header: (name) => asksCors.get(name) })
      for (const [name, value] of Object.entries(before)) asked.fields.set(name, value)
      const { verdict, hold } = now(guard.check(asked))
      /** The answer goes out, with these fields. */
      async function answer(fields: Record<string, string> = {}, status = 200) {
        for (const [name, value] of Object.entries(fields)) asked.fields.set(name, value)
        hold?.finish(status)
        await vi.advanceTimersByTimeAsync(0)
      }
      return { action: verdict.action, answer, leave: () => hold?.abort() }
    },
  }
}

const cors = { 'Access-Control-Allow-Methods': 'POST' }

describe('a request in the shape of a preflight', () => {
  it.each([
    ['has CORS methods', cors, 204],
    ['has CORS headers', { 'Access-Control-Allow-Headers': 'content-type' }, 200],
    ['is that of a router', { Allow: 'GET' }, 200],
    ['is 404', {}, 404],
    ['is 405', {}, 405],
  ] as const)('is not counted where its answer %s', async (_how, fields, status) => {
    const { ask, used } = guarded()
    for (let i = 0; i < 5; i += 1) {
      const { action, answer } = ask()
      expect(action).toBe('pass')
      await answer(fields, status)
    }
    expect(await used()).toBe(0)
  })

  it('is charged for any other answer, also 401, and refused when the limit is exhausted', async () => {
    const { ask, used } = guarded()
    await ask().answer({ 'Access-Control-Allow-Origin': '*' }, 401)
    expect(await used()).toBe(1)
    expect(ask().action).toBe('pass')
    expect(await used()).toBe(2)
    expect(ask().action).toBe('reject')
  })

  it('is charged when its client leaves', async () => {
    const { ask, used } = guarded()
    ask().leave()
    await vi.advanceTimersByTimeAsync(0)
    expect(await used()).toBe(1)
  })

  it('is not told by CORS fields that stand on every answer', async () => {
    const { ask, used } = guarded()
    await ask(undefined, cors).answer()
    expect(await used()).toBe(1)
  })

  it('is charged for each that was under way at once', async () => {
    const { ask, used } = guarded()
    const asked = Array.from({ length: 9 }, () => ask())
    for (const { answer } of asked) await answer()
    expect(await used()).toBe(2)
    expect(ask().action).toBe('reject')
  })

  it('makes no other address suspect, and its own for a window', async () => {
    const { ask } = guarded({ limit: 1 })
    await ask().answer()
    expect(ask().action).toBe('reject')
    expect(ask('203.0.113.10').action).toBe('pass')
    vi.advanceTimersByTime(60_000)
    const { action, answer } = ask()
    expect(action).toBe('pass')
    await answer(cors)
    expect(ask().action).toBe('pass')
  })

  it('costs what a request costs, and nothing where that is skipped or allowed', async () => {
    const dear = guarded({ cost: 2 })
    await dear.ask().answer()
    expect(await dear.used()).toBe(2)
    for (const free of [{ skip: () => true }, { allow: { ips: ['203.0.113.0/24'] } }]) {
      const { ask, used } = guarded(free)
      await ask().answer()
      expect(await used()).toBe(0)
    }
  })

  it('asks no function of the user before it is answered, and survives what that throws', async () => {
    const key = vi.fn(() => {
      throw new Error('no user')
    })
    const { ask } = guarded({ key })
    const { answer } = ask()
    expect(key).not.toHaveBeenCalled()
    await answer()
    expect(key).toHaveBeenCalledTimes(1)
    expect(() => ask()).toThrow('no user')
  })
})
