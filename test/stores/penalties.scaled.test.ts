import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { patientLimiter, type SomeOptions } from '../support/patient-limiter.ts'
import { type OpenedStore, type StoreDriver, serverOf, storeDrivers } from './store-drivers.ts'

// That stores decide alike about strikes and blocks is proven by the differential.

const minute = 60_000
const block = { after: 1, within: '1m', for: '5s', factor: 1, thenReset: true } as const

describe.each(storeDrivers)('a penalty ($name)', (driver: StoreDriver) => {
  const server = serverOf(driver)
  let now: number
  let opened: OpenedStore

  beforeEach(async () => {
    now = 1_795_195_800_000
    opened = await server.open(() => now)
  })

  afterEach(() => opened.close())

  const limiterOf = (options: SomeOptions) => patientLimiter({ store: opened.store, ...options })

  it('blocks by hand at once, anew, for all that name it, and until a reset', async () => {
    const penalty = { after: 'never', name: 'bans' } as const
    const desk = limiterOf({ penalty })
    const limiter = limiterOf({ limit: 1, window: '1s', penalty })
    const other = limiterOf({ name: 'other', limit: 9, window: '1s', penalty: block })
    await desk.block('k', '1h')
    expect((await desk.consume('k')).allowed).toBe(false)
    expect((await other.consume('k')).allowed).toBe(true)
    expect((await limiter.consume('k')).retryAfterMs).toBe(60 * minute)
    await desk.block('k', '1m')
    expect((await limiter.consume('k')).retryAfterMs).toBe(minute)
    await desk.reset('k')
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  it.each(['sliding-log', 'sliding-counter', 'fixed-window', 'token-bucket'] as const)(
    'of thenReset gives the whole quota back when the block ends, and not before: %s',
    async (algorithm) => {
      const limiter = limiterOf({ limit: 3, window: '1m', algorithm, penalty: block })
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
    const limiter = limiterOf({
      policies: [
        { name: 'tight', limit: 1, window: '1m' },
        { name: 'wide', limit: 9, window: '1h', algorithm: 'fixed-window' },
        { name: 'inflight', limit: 5, algorithm: 'concurrency' },
      ],
      penalty: block,
    })
    const left = async (key: string) =>
      (await limiter.peek(key)).outcomes.map(({ remaining }) => remaining)
    for (const key of ['other', 'k', 'k']) await limiter.consume(key)
    now += 5_000

    expect(await left('k')).toEqual([1, 9, 4, 1])
    expect(await left('other')).toEqual([0, 8, 4, 1])
  })
})
