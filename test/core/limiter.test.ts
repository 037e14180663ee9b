import { inspect } from 'node:util'
import {
  type Change,
  createCheckLimiter,
  createLimiter,
  memoryStore,
  type Store,
  type StoreErrorEvent,
  unlimited,
} from '@sluice/core'
import { describe, expect, it, vi } from 'vitest'
import { fakeTime } from '../support/fake-time.ts'
import { checkOf } from '../support/patient-limiter.ts'

fakeTime(['Date'], { now: 1_795_195_800_000 })

describe('consume, peek and charge', () => {
  it.each([Number.NaN, -1, 0.5, '1', Number.POSITIVE_INFINITY, 2 ** 53, null])(
    'reject a cost of %j, and take nothing',
    async (cost) => {
      const limiter = createCheckLimiter({ limit: 5, window: '1m' })
      const code = 'SLUICE_COST_INVALID'
      for (const method of ['consume', 'peek', 'charge'] as const) {
        const asked = limiter[method]('k', { cost: cost as number })
        await expect(asked).rejects.toMatchObject({ code })
      }
      expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(5)
    },
  )

  it.each([5, null, 'cost', []])('reject options that are %j, not { cost }', async (options) => {
    const limiter = createCheckLimiter({ limit: 5, window: '1m' })
    const asked = limiter.consume('k', options as never)
    await expect(asked).rejects.toThrow(/^options must be a plain object, but is /)
  })

  it.each([undefined, null, {}, { outcomes: 5 }])('give nothing back for %j', async (decision) => {
    const limiter = createCheckLimiter({ limit: 5, window: '1m' })
    for (const method of ['refund', 'release', 'renew'] as const) {
      const asked = limiter[method](decision as never)
      await expect(asked).rejects.toThrow(/^decision must be a decision from consume or charge/)
    }
  })

  it('refund a decision once, even through copies', async () => {
    const limiter = createCheckLimiter({ limit: 10, window: '1m' })
    const decision = await limiter.consume('k', { cost: 2 })
    await limiter.consume('k', { cost: 3 })
    expect(await limiter.refund({ ...decision })).toBe(true)
    expect(await limiter.refund({ ...decision })).toBe(false)
    expect(await limiter.refund(decision)).toBe(false)
    expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(7)
  })

  it.each(['', undefined, null, 42, {}])('reject the key %j', async (key) => {
    const limiter = createCheckLimiter({ limit: 5, window: '1m' })
    await expect(limiter.consume(key as string)).rejects.toMatchObject({
      code: 'SLUICE_KEY_INVALID',
    })
  })

  it('refund by the promise of a remote call, which on Cloudflare is a function', async () => {
    const memory = memoryStore()
    const thenOf = (asked: Change) => (use: (changed: unknown) => void) => use(memory.change(asked))
    const change = (asked: Change) => new Proxy(() => 0, { get: () => thenOf(asked) }) as never
    const limiter = createCheckLimiter({ limit: 5, window: '1m', store: { ...memory, change } })
    expect(await limiter.refund(await limiter.consume('k'))).toBe(true)
  })

  it('reject an option that does not exist', async () => {
    const limiter = createCheckLimiter({ limit: 5, window: '1m' })
    await expect(
      limiter.consume('k', Object.assign({ cost: 1 }, { weight: 5 })),
    ).rejects.toMatchObject({ code: 'SLUICE_OPTION_UNKNOWN' })
  })
})

describe('a decision', () => {
  it('shows an unlimited policy in order', async () => {
    const open = { limit: unlimited, window: '1m' } as const
    const policies = [open, { limit: 2, window: '1m' }, open] as const
    const { outcomes } = await createCheckLimiter({ policies }).consume('k')
    const all = Number.POSITIVE_INFINITY
    expect(outcomes.map(({ remaining }) => remaining)).toEqual([all, 1, all])
  })

  it('omits the key from JSON', async () => {
    const limiter = createCheckLimiter({ limit: 2, window: '1m' })
    const decision = await limiter.consume('sk_live_secret')

    expect(JSON.stringify(decision)).not.toContain('sk_live')
    expect(inspect(decision, { depth: 10, showHidden: true })).not.toContain('sk_live')
  })
})

it('peeks at policies with names that every object has', async () => {
  const limiter = createLimiter({ name: 'constructor', limit: 2, window: '1m' })
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(2)
})

describe('peek, where the limit comes with each request', () => {
  const options = { name: 'api', limit: 10, window: '1h' } as const
  const made = (store: Store) => {
    const limiter = createCheckLimiter({ ...options, store }, [true])
    const decide = (key: string, limit: number) =>
      limiter.decide([checkOf(limiter.policies[0], { key, limit })])
    const peeked = async (key: string) => {
      const { allowed, limit, outcomes } = await limiter.peek(key)
      expect(limit).toBe(outcomes[0]?.limit)
      return [allowed, outcomes[0]?.limit, outcomes[0]?.used]
    }
    return { decide, peeked }
  }

  it('knows the limits of 4,000 keys with a store that keeps none, and no default', async () => {
    const { keys: _, ...store } = memoryStore()
    const { decide, peeked } = made(store)
    for (let i = 0; i <= 4_000; i += 1) await decide(`user-${i}`, 100)
    await decide('free', 10)
    expect(await peeked('user-0')).toEqual([undefined, undefined, 1])
    expect(await peeked('free')).toEqual([undefined, undefined, 1])
    expect(await peeked('user-1')).toEqual([true, 100, 1])
    await decide('user-1', 1)
    expect(await peeked('user-1')).toEqual([false, 1, 1])
    await decide('user-1', 10)
    expect(await peeked('user-1')).toEqual([true, 10, 2])
  })

  it('knows in memory the limit of the last request of every key, allowed or denied', async () => {
    const { decide, peeked } = made(memoryStore())
    await decide('free', 10)
    expect(await peeked('free')).toEqual([true, 10, 1])
    await decide('free', 1)
    expect(await peeked('free')).toEqual([false, 1, 1])
    await decide('free', Number.POSITIVE_INFINITY)
    expect(await peeked('free')).toEqual([true, Number.POSITIVE_INFINITY, undefined])
    await decide('free', 5)
    expect(await peeked('free')).toEqual([true, 5, 2])
  })

  it("never uses another key's limit for a key without room", async () => {
    const { decide, peeked } = made(memoryStore({ maxKeys: 1 }))
    await decide('full', 1)
    await decide('other', 100)
    expect(await peeked('other')).toEqual([undefined, undefined, 1])
  })
})

describe('observers', () => {
  it('receive the deciding policy: longest wait, else fewest remaining requests, else latest reset', async () => {
    const told: unknown[] = []
    const limiter = createCheckLimiter({
      policies: [
        { name: 'second', limit: 1, window: '1s' },
        { name: 'hour', limit: 3, window: '1h' },
        { name: 'day', limit: 2, window: '1d' },
      ],
      observers: {
        onDecision: ({ policy, decision: { limit, remaining } }) =>
          void told.push([policy?.name, limit, remaining]),
      },
    })
    for (const waitMs of [0, 0, 1_000, 0]) {
      vi.advanceTimersByTime(waitMs)
      await limiter.consume('k')
    }
    expect(told).toEqual([
      ['second', 1, 0],
      ['second', 1, 0],
      ['day', 2, 0],
      ['day', 2, 0],
    ])
  })
})

function failNow(): never {
  throw new Error('down')
}

describe.each([
  ['throws', failNow],
  ['rejects', () => Promise.reject(new Error('down'))],
  ['rejects with no error', () => Promise.reject('down')],
])('a store that %s', (_how, fail) => {
  const store = (): Store => ({ apply: fail, change: fail })

  it('is replaced by local memory, shared by the limiters of the store', async () => {
    const errors: StoreErrorEvent[] = []
    const broken = store()
    const observers = { onStoreError: (event: StoreErrorEvent) => errors.push(event) }
    const options = { store: broken, name: 'p', limit: 2, window: '1m', observers } as const
    const [one, two] = [1, 2].map(() => createCheckLimiter(options))
    const first = await one?.consume('k')
    expect(first).toMatchObject({ allowed: true, source: 'fallback' })
    expect(await two?.consume('k')).toMatchObject({ allowed: true, source: 'fallback' })
    expect(await one?.consume('k')).toMatchObject({ allowed: false, source: 'fallback' })
    if (first) expect(await one?.refund(first)).toBe(true)
    expect(await two?.consume('k')).toMatchObject({ allowed: true })
    // The fourth did not ask any more: the breaker was open.
    expect(errors).toHaveLength(3)
    const error = { name: 'SluiceError', code: 'SLUICE_STORE_FAILED' }
    expect(errors[0]).toMatchObject({ op: 'consume', error })
    expect(errors[0]?.error.message).toContain('down')
  })

  it('makes a reset reject, since it has no fallback', async () => {
    const limiter = createCheckLimiter({ store: store(), limit: 5, window: '1m' })
    await expect(limiter.reset('k')).rejects.toMatchObject({ code: 'SLUICE_STORE_FAILED' })
  })
})
