import {
  type CheckLimiter,
  createCheckLimiter,
  memoryStore,
  type PenaltyOptions,
  unlimited,
} from '@sluice/core'
import { describe, expect, it, vi } from 'vitest'
import { fakeTime } from '../support/fake-time.ts'
import { checkOf } from '../support/patient-limiter.ts'
import { storeThrough } from '../support/store-through.ts'

const minute = 60_000

fakeTime(['Date'], { now: 1_795_195_800_000 })

const three = { after: 3, within: '1m', for: '5m' } as const

function limiterOf(penalty: PenaltyOptions, limit = 1): CheckLimiter {
  return createCheckLimiter({ limit, window: '1s', penalty })
}

/** Waits out what the key is told, and collects so many denials anew. Returns what the last of them is told. */
async function offend(limiter: CheckLimiter, denials: number): Promise<number> {
  vi.advanceTimersByTime((await limiter.peek('k')).retryAfterMs)
  await limiter.consume('k')
  let told = 0
  for (let i = 0; i < denials; i += 1) told = (await limiter.consume('k')).retryAfterMs
  return told
}

describe('a penalty', () => {
  it.each([
    ['doubles', {}, [5, 10, 20, 40]],
    ['up to a maximum', { factor: 10, max: '30m' as const }, [5, 30, 30, 30]],
    ['by no overflow', { factor: 1e300 }, [5, 24 * 60, 24 * 60, 24 * 60]],
  ])('grows with each offence: %s', async (_how, options, minutes) => {
    const limiter = limiterOf({ ...three, ...options })
    const told = []
    for (let i = 0; i < 4; i += 1) told.push((await offend(limiter, 3)) / minute)
    expect(told).toEqual(minutes)
  })
})

describe('a block by hand', () => {
  it('is the only check with an unlimited policy', async () => {
    const penalty = { after: 'never' } as const
    const limiter = createCheckLimiter({ limit: unlimited, window: '1s', penalty })
    expect((await limiter.consume('k')).allowed).toBe(true)
    await limiter.block('k', '1h')
    const outcomes = [{ allowed: true }, { allowed: false }]
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, outcomes })
  })

  it('is refused without the option penalty, with what to set', async () => {
    const limiter = createCheckLimiter({ limit: 1, window: '1s' })
    await expect(limiter.block('k', '1h')).rejects.toMatchObject({
      code: 'SLUICE_PENALTY_MISSING',
      message: expect.stringContaining("penalty: { after: 'never' }"),
    })
  })

  it.each([0, Number.NaN, '5', '4000d', undefined])('is refused for %s', async (duration) => {
    const limiter = limiterOf({ after: 'never' })
    await expect(limiter.block('k', duration as never)).rejects.toThrow(/^for must be/)
    expect((await limiter.consume('k')).allowed).toBe(true)
  })
})

describe('a memory that is full of exhausted keys', () => {
  it("blocks nobody for another key's strikes, and reports a manual block as failed", async () => {
    const store = memoryStore({ maxKeys: 10 })
    const full = createCheckLimiter({ store, limit: 1, window: '1d', name: 'full' })
    for (let i = 0; i < 10; i += 1) await full.consume(`key ${i}`)
    const penalty = { ...three, after: 1 }
    const limiter = createCheckLimiter({ store, limit: 0, window: '1s', penalty })
    for (let i = 0; i < 500; i += 1) {
      expect((await limiter.consume(`other ${i}`)).outcomes[1]?.allowed).toBe(true)
    }
    await expect(limiter.block('k', '1h')).rejects.toThrow(/full/)
  })

  it('keeps blocked keys', async () => {
    const [store, penalty] = [memoryStore({ maxKeys: 100 }), { after: 'never' } as const]
    const limiter = createCheckLimiter({ store, limit: 5, window: '1d', penalty })
    await limiter.block('k', '1h')
    for (let i = 0; i < 2_000; i += 1) await limiter.consume(`key ${i}`)
    expect((await limiter.consume('k')).allowed).toBe(false)
  })
})

it('a strike that is counted later clears what the block of thenReset clears', async () => {
  const limiter = limiterOf({ after: 1, within: '1m', for: '5s', thenReset: true })
  await limiter.consume('k')
  const strike = checkOf(limiter.penalty)
  limiter.strike(strike, [checkOf(limiter.policies[0]), strike])

  expect((await limiter.peek('k')).outcomes).toMatchObject([{ remaining: 1 }, { allowed: false }])
})

it("a block with thenReset reports the window's wait if the store cleared nothing", async () => {
  const store = storeThrough(memoryStore(), (op) => {
    if (op === 'reset') throw new Error('gone')
  })
  const observers = { onStoreError: vi.fn() }
  const penalty = { after: 1, within: '1m', for: '5s', thenReset: true } as const
  const limiter = createCheckLimiter({ limit: 1, window: '1m', store, penalty, observers })
  await limiter.consume('k')

  expect((await limiter.consume('k')).retryAfterMs).toBe(60_000)
  expect(observers.onStoreError.mock.calls).toMatchObject([[{ op: 'reset' }]])
})

describe('wrong options', () => {
  const good = { after: 3, within: '1m', for: '5m' }
  it.each([
    ['penalty must be a plain object', true],
    ["penalty: there is no option 'atfer' (did you mean 'after'?)", { atfer: 3 }],
    ['penalty.after must be', {}],
    ['penalty.after must be', { ...good, after: 0 }],
    ['penalty.after must be', { ...good, after: 2_000_000 }],
    ["penalty.after must be a whole number from 1 to 1000000, or 'never'", { ...good, after: 'x' }],
    ['penalty.within must be', { after: 3, for: '5m' }],
    ['penalty.within must be', { ...good, within: '5' }],
    ['penalty.for must be', { after: 3, within: '1m' }],
    ['penalty.for must be at most ten years', { ...good, for: '4000d' }],
    ['penalty.factor must be a number ≥ 1', { ...good, factor: 0.5 }],
    ['penalty.factor must be a number ≥ 1', { ...good, factor: Number.NaN }],
    ['penalty.factor must be a number ≥ 1', { ...good, factor: Number.POSITIVE_INFINITY }],
    ['penalty.max must be at least penalty.for (300000 ms)', { ...good, max: '4m' }],
    ['penalty.hidden must be', { ...good, hidden: 1 }],
    ['penalty.name must be', { ...good, name: '' }],
    ["penalty.for must be left out with after: 'never'", { after: 'never', for: '5m' }],
    ['penalty.thenReset must be left out', { after: 'never', thenReset: true }],
    ['penalty.thenReset must be true or false', { ...good, thenReset: 1 }],
    ["penalty.for must be at least '1s'", { ...good, for: '900ms', thenReset: true }],
    ["'default' counts the requests that a block denies", { ...good, thenReset: true }, true],
  ])('%s', (message, penalty, countDenied = false) => {
    const options = { limit: 1, window: '1s', penalty, countDenied } as never
    expect(() => createCheckLimiter(options)).toThrow(message)
  })

  it('a block longer than a day is its own maximum', () => {
    expect(limiterOf({ ...three, for: '2d' }).penalty?.penalty?.maxMs).toBe(2 * 86_400_000)
  })

  it("one name has one strike window: a shorter one would clear a longer one's strikes", () => {
    const store = memoryStore()
    const make = (penalty: PenaltyOptions) => createCheckLimiter({ store, penalty })
    const by = { name: 'bans', after: 3, for: '1h' } as const
    make({ name: 'bans', after: 'never' })
    make({ ...by, within: '1h' })
    make({ name: 'bans', after: 'never' })
    make({ ...by, after: 9, for: '5m', within: '1h' })

    expect(() => make({ ...by, within: '1m' })).toThrow(
      /'bans' .* penalty within 3600000 ms and as penalty within 60000 ms; use two names, or the same/,
    )
  })

  it('one name cannot be both a policy and a penalty', () => {
    const store = memoryStore()
    const named = { ...three, name: 'p' }
    const quota = { store, name: 'p', limit: 1, window: '1s' } as const
    const failsWith = (code: string) => expect.objectContaining({ code })
    const both = () => createCheckLimiter({ ...quota, penalty: named })
    expect(both).toThrow(failsWith('SLUICE_POLICY_DUPLICATE'))
    createCheckLimiter(quota)
    const other = () => createCheckLimiter({ store, penalty: named })
    expect(other).toThrow(failsWith('SLUICE_POLICY_CONFLICT'))
  })
})
