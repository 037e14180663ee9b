import { type InvalidEvent, memoryStore, SluiceError, unlimited } from '@sluice/core'
import { adaptive, type GuardFields, schedule, type TierTable, tiers } from '@sluice/http'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { exchange, guardOf, now } from '../exchange.ts'

interface Client {
  plan?: unknown
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const planOf = (request: object) => (request as Client).plan as string

/** Asks for clients of the plans that it is given, one after the other, each of them the same client. */
function asker(options: GuardFields<object>) {
  const onInvalid = vi.fn<(event: InvalidEvent) => void>()
  const guard = guardOf({ window: '1m', observers: { onInvalid }, ...options })
  function ask(plan: unknown) {
    return now(guard.check({ ...exchange(), native: { plan } }) as never).decision
  }
  return { ask, limit: (plan: unknown) => ask(plan)?.outcomes[0]?.limit, onInvalid }
}

function failure(make: () => unknown): SluiceError {
  try {
    make()
  } catch (error) {
    if (error instanceof SluiceError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('tiers', () => {
  const table: TierTable<object> = { free: 2, paid: 5, root: unlimited, default: 1 }

  it.each([undefined, 'named'])('limits each tier, in a policy that is %s', (name) => {
    const { limit, onInvalid } = asker({ limit: tiers(table, planOf), ...(name ? { name } : {}) })
    expect(['free', 'paid', 'root'].map(limit)).toEqual([2, 5, Number.POSITIVE_INFINITY])
    expect(onInvalid).not.toHaveBeenCalled()
  })

  it('keeps what is counted when a client changes its tier', () => {
    const { ask } = asker({ limit: tiers(table, planOf) })
    expect([ask('free'), ask('free'), ask('free')].map((it) => it?.allowed)).toEqual([
      true,
      true,
      false,
    ])
    expect(ask('paid')?.outcomes[0]).toMatchObject({ allowed: true, limit: 5, remaining: 2 })
    expect(ask('free')?.allowed).toBe(false)
  })

  it.each([undefined, null, ''])(
    'takes the default for a tier of %s, and reports nothing',
    (plan) => {
      const { limit, onInvalid } = asker({ limit: tiers(table, planOf) })
      expect(limit(plan)).toBe(1)
      expect(onInvalid).not.toHaveBeenCalled()
    },
  )

  it.each(['gold', '__proto__', 'toString', 'constructor', 'hasOwnProperty', 5, {}, true])(
    'takes the default for the unknown tier %s, and reports it',
    (plan) => {
      const { limit, onInvalid } = asker({ limit: tiers(table, planOf) })
      expect(limit(plan)).toBe(1)
      expect(onInvalid).toHaveBeenCalledExactlyOnceWith({
        code: 'SLUICE_TIER_UNKNOWN',
        message: expect.stringMatching(
          /^tiers of free, paid, root, default: there is no tier .*the default stood in/,
        ),
      })
    },
  )

  it('never lets any text but those of the table have another limit than the default', () => {
    const { limit } = asker({ limit: tiers({ paid: 5, default: 1 }, planOf) })
    fc.assert(
      fc.property(fc.anything(), (plan) => {
        fc.pre(plan !== 'paid')
        expect(limit(plan)).toBe(1)
      }),
    )
  })

  it('bounds what a report shows of a tier', () => {
    const { limit, onInvalid } = asker({ limit: tiers(table, planOf) })
    limit('x'.repeat(10_000))
    expect(onInvalid.mock.calls[0]?.[0].message.length).toBeLessThan(300)
  })

  it('keeps a report on one line, whatever a client sent for a tier', () => {
    const { limit, onInvalid } = asker({ limit: tiers(table, planOf) })
    for (const text of ['a\nsluice: forged', '\r\n', '\u2028', '\u202e', '\x1b[2J', '\ud800', '\0'])
      limit(text)
    const messages = onInvalid.mock.calls.map(([{ message }]) => message)
    expect(messages).toHaveLength(7)
    for (const message of messages) expect(message).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u)
    expect(messages[0]).toContain("there is no tier 'a\\u{a}sluice: forged'")
  })

  it('throws what the function throws', () => {
    const find = () => {
      throw new Error('no plan')
    }
    expect(() => asker({ limit: tiers({ default: 1 }, find) }).ask('')).toThrow('no plan')
  })

  it('asks an async function too', async () => {
    const guard = guardOf({ window: '1m', limit: tiers(table, async (request) => planOf(request)) })
    const passage = await guard.check({ ...exchange(), native: { plan: 'paid' } })
    expect(passage.decision?.outcomes[0]?.limit).toBe(5)
  })

  it('takes functions, schedules, adaptive limits and tables as entries', () => {
    vi.setSystemTime('2026-11-20T12:00:00Z')
    const { limit, onInvalid } = asker({
      limit: tiers(
        {
          function: () => 11,
          schedule: schedule({
            timeZone: 'UTC',
            default: 12,
            rules: [{ from: '12:00', to: '13:00', limit: 13 }],
          }),
          adaptive: adaptive({ signal: () => 0, low: 1, high: 2, min: 3, max: 14 }),
          table: tiers({ table: 15 }, planOf),
          default: 1,
        },
        planOf,
      ),
    })
    expect(['function', 'schedule', 'adaptive', 'table'].map(limit)).toEqual([11, 13, 14, 15])
    expect(onInvalid).not.toHaveBeenCalled()
  })

  it('takes the default of the policy where an entry yields no limit, and reports it', () => {
    const { limit, onInvalid } = asker({
      limit: tiers({ broken: () => Number.NaN, default: 7 }, planOf),
    })
    expect(limit('broken')).toBe(7)
    expect(onInvalid).toHaveBeenCalledExactlyOnceWith({
      code: 'SLUICE_LIMIT_INVALID',
      message: expect.stringContaining('(7) stood in'),
    })
  })

  it('takes defaultLimit where the table has no default, or none that is fixed', () => {
    const without = asker({ limit: tiers({ free: 2 }, planOf), defaultLimit: 9 })
    expect([without.limit('free'), without.limit('gold'), without.limit('')]).toEqual([2, 9, 9])
    const found = asker({ limit: tiers({ default: () => -1 }, planOf), defaultLimit: 9 })
    expect(found.limit('')).toBe(9)
  })

  it('is reduced by the headroom of the policy, also where the default stands in', () => {
    const { limit } = asker({ limit: tiers({ free: 100, default: 50 }, planOf), headroom: 0.1 })
    expect([limit('free'), limit('gold')]).toEqual([90, 45])
  })

  it('has its counts in a store, which serves all tiers', () => {
    const store = memoryStore()
    const one = asker({ limit: tiers(table, planOf), store, name: 'shared' })
    const other = asker({ limit: 5, store, name: 'shared' })
    one.ask('paid')
    expect(other.ask('')?.outcomes[0]?.remaining).toBe(3)
  })

  it.each<[() => unknown, string, RegExp]>([
    [
      () => tiers({}, planOf),
      'SLUICE_OPTION_INVALID',
      /^tiers\(table\) must be a plain object of limits/,
    ],
    [
      () => tiers([] as never, planOf),
      'SLUICE_OPTION_INVALID',
      /^tiers\(table\) must be a plain object/,
    ],
    [() => tiers(null as never, planOf), 'SLUICE_OPTION_INVALID', /^tiers\(table\) .* but is null/],
    [
      () => tiers({ free: -1 }, planOf),
      'SLUICE_LIMIT_INVALID',
      /^tiers.free must be a whole number .* but is -1/,
    ],
    [() => tiers({ free: 0.5 }, planOf), 'SLUICE_LIMIT_INVALID', /^tiers.free .* but is 0.5/],
    [
      () => tiers({ free: '9' as never }, planOf),
      'SLUICE_LIMIT_INVALID',
      /^tiers.free .* but is '9'/,
    ],
    [() => tiers({ free: undefined as never }, planOf), 'SLUICE_LIMIT_INVALID', /^tiers.free/],
    [
      () => tiers({ free: 1 }, 'plan' as never),
      'SLUICE_OPTION_INVALID',
      /must be a function of the request/,
    ],
    [
      () => asker({ limit: tiers({ free: 1 }, planOf) }),
      'SLUICE_LIMIT_INVALID',
      /^defaultLimit .* beside tiers\(…\) .*give it one, as in { …, default: 60 }/,
    ],
    [
      () => guardOf({ policies: [{ window: '1m', limit: tiers({ free: 1 }, planOf) }] }),
      'SLUICE_LIMIT_INVALID',
      /^policies\[0\].defaultLimit/,
    ],
    [
      () =>
        asker({
          limit: 1,
          profiles: { plan: { window: '1m', limit: tiers({ free: 1 }, planOf) } },
        }),
      'SLUICE_LIMIT_INVALID',
      /^profiles.plan.defaultLimit/,
    ],
    [
      () => asker({ limit: tiers({ default: () => 1 }, planOf) }),
      'SLUICE_LIMIT_INVALID',
      /^defaultLimit/,
    ],
    [
      () => asker({ limit: tiers(table, planOf), defaultLimit: 1 }),
      'SLUICE_OPTION_INVALID',
      /^defaultLimit must be left out beside tiers/,
    ],
    [
      () => asker({ limit: tiers({ big: 2 ** 47, default: 1 }, planOf) }),
      'SLUICE_POLICY_RANGE',
      /^limit of 'default': tiers\(…\) goes up to 140737488355328/,
    ],
  ])('%# names the place and the fix', (make, code, message) => {
    expect(failure(make)).toMatchObject({ code, message: expect.stringMatching(message) })
  })
})
