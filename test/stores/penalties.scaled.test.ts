import type { Limiter } from '@sluice/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import { type OpenedStore, type StoreDriver, serverOf, storeDrivers } from './store-drivers.ts'

const minute = 60_000
const penalty = { after: 3, within: '1m', for: '5m' } as const

describe.each(storeDrivers)('$name', (driver: StoreDriver) => {
  const server = serverOf(driver)
  let now: number
  let opened: OpenedStore

  beforeEach(async () => {
    now = 1_795_195_800_000
    opened = await server.open(() => now)
  })

  afterEach(() => opened.close())

  function limiterOf(options: SomeOptions = {}): Limiter {
    return patientLimiter({ store: opened.store, limit: 1, window: '1s', penalty, ...options })
  }

  async function denials(limiter: Limiter, count: number): Promise<number> {
    let told = 0
    await limiter.consume('k')
    for (let i = 0; i < count; i += 1) told = (await limiter.consume('k')).retryAfterMs
    return told
  }

  it('blocks after so many denials, for longer each time, until it is quiet', async () => {
    const limiter = limiterOf()
    const told = []
    for (const quietMs of [0, 5 * minute, 10 * minute, 20 * minute + 20 * minute]) {
      now += quietMs
      expect(await denials(limiter, 2)).toBe(1_000)
      told.push((await limiter.consume('k')).retryAfterMs / minute)
      expect(await limiter.consume('k')).toMatchObject({ allowed: false, source: 'store' })
    }
    expect(told).toEqual([5, 10, 20, 5])
  })

  it('counts no denials while it blocks, and takes no quota', async () => {
    const limiter = limiterOf({ limit: 2 })
    await limiter.block('k', '1m')
    for (let i = 0; i < 9; i += 1) {
      expect((await limiter.consume('k')).outcomes).toMatchObject([
        { allowed: true, remaining: 2, retryAfterMs: 0 },
        { allowed: false, remaining: 0, limit: 3, retryAfterMs: minute, resetMs: undefined },
      ])
    }
    now += minute
    expect((await limiter.consume('k')).outcomes).toMatchObject([
      { remaining: 1 },
      { remaining: 3 },
    ])
  })

  it('is one among several policies, whose denials count once', async () => {
    const limiter = patientLimiter({
      store: opened.store,
      policies: [
        { name: 'a', limit: 1, window: '1m' },
        { name: 'b', limit: 1, window: '1m', algorithm: 'fixed-window' },
        { name: 'c', limit: 9, window: '1m', countDenied: true },
      ],
      penalty,
    })
    const left = []
    for (let i = 0; i < 4; i += 1) left.push((await limiter.consume('k')).outcomes[3]?.remaining)
    expect(left).toEqual([3, 2, 1, 0])
  })

  it('blocks by hand at once, anew, for all that name it, and until a reset', async () => {
    const named = { after: 'never', name: 'bans' } as const
    const limiter = limiterOf({ penalty: named })
    const desk = patientLimiter({ store: opened.store, penalty: named })
    const other = limiterOf({ name: 'other', limit: 9 })
    await desk.block('k', '1h')
    expect((await desk.consume('k')).allowed).toBe(false)
    expect((await other.consume('k')).allowed).toBe(true)
    expect((await limiter.consume('k')).retryAfterMs).toBe(60 * minute)
    await desk.block('k', '1m')
    expect((await limiter.consume('k')).retryAfterMs).toBe(minute)
    await desk.reset('k')
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  it('decides a parallel burst in order', async () => {
    const limiter = limiterOf({ limit: 5 })
    const decisions = await Promise.all(Array.from({ length: 50 }, () => limiter.consume('k')))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(5)
    const blocked = decisions.filter(({ outcomes }) => outcomes[1]?.allowed === false)
    expect(blocked).toHaveLength(50 - 5 - 2)
  })

  it('gives nothing back with a refund', async () => {
    const limiter = limiterOf({ limit: 2 })
    const decision = await limiter.consume('k')
    await denials(limiter, 2)
    await limiter.refund(decision)
    expect((await limiter.peek('k')).outcomes).toMatchObject([{ remaining: 1 }, { remaining: 1 }])
  })

  const block = { after: 1, within: '1m', for: '5s', factor: 1, thenReset: true } as const

  it.each(['sliding-log', 'sliding-counter', 'fixed-window', 'token-bucket'] as const)(
    'of thenReset gives the whole quota back when the block ends, and not before: %s',
    async (algorithm) => {
      const limiter = patientLimiter({
        store: opened.store,
        limit: 3,
        window: '1m',
        algorithm,
        penalty: block,
      })
      for (let round = 0; round < 3; round += 1) {
        const burst = await Promise.all(Array.from({ length: 9 }, () => limiter.consume('k')))
        expect(burst.filter(({ allowed }) => allowed)).toHaveLength(3)
        expect(burst[3]).toMatchObject({ allowed: false, retryAfterMs: 5_000 })
        expect(burst[3]?.outcomes).toMatchObject([{ allowed: false, resetMs: 5_000 }, {}])
        now += 4_999
        expect(await limiter.consume('k')).toMatchObject({ allowed: false, retryAfterMs: 1 })
        now += 1
      }
    },
  )

  it('of thenReset clears all policies of the key, and no request in flight', async () => {
    const limiter = patientLimiter({
      store: opened.store,
      policies: [
        { name: 'tight', limit: 1, window: '1m' },
        { name: 'wide', limit: 9, window: '1h', algorithm: 'fixed-window' },
        { name: 'inflight', limit: 5, algorithm: 'concurrency' },
      ],
      penalty: block,
    })
    const left = async (key: string) =>
      (await limiter.peek(key)).outcomes.map(({ remaining }) => remaining)
    await limiter.consume('other')
    await denials(limiter, 1)
    now += 5_000

    expect(await left('k')).toEqual([1, 9, 4, 1])
    expect(await left('other')).toEqual([0, 8, 4, 1])
  })

  it('without thenReset leaves a client out until its window has room', async () => {
    const limiter = limiterOf({ window: '1m', penalty: { ...block, thenReset: false } })
    expect(await denials(limiter, 1)).toBe(minute)
    now += minute - 1
    expect((await limiter.consume('k')).allowed).toBe(false)
  })

  it.each([-3_600_000, -1])(
    'lasts no longer than asked when the clock steps by %i ms',
    async (ms) => {
      const limiter = limiterOf()
      await denials(limiter, 3)
      now += ms
      expect((await limiter.consume('k')).retryAfterMs).toBe(5 * minute)
      now += 5 * minute
      expect((await limiter.consume('k')).allowed).toBe(true)
    },
  )
})
