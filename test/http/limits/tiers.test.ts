import { type InvalidEvent, unlimited } from '@sluice/core'
import { adaptive, type GuardFields, schedule, type TierTable, tiers } from '@sluice/http'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { raise } from '../../support/raise.ts'
import { exchange, guardOf, now } from '../exchange.ts'
import { errorOf } from '../wrong-options.ts'

interface Client {
  plan?: unknown
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

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

describe('tiers', () => {
  const table: TierTable<object> = { free: 2, paid: 5, root: unlimited, default: 1 }

  it.each([undefined, 'named'])('limits each tier and none, in a policy that is %s', (name) => {
    const { limit, onInvalid } = asker({ limit: tiers(table, planOf), ...(name ? { name } : {}) })
    const plans = ['free', 'paid', 'root', undefined, null, '']
    expect(plans.map(limit)).toEqual([2, 5, Number.POSITIVE_INFINITY, 1, 1, 1])
    expect(onInvalid).not.toHaveBeenCalled()
  })

  it('keeps what is counted when a client changes its tier', () => {
    const { ask } = asker({ limit: tiers(table, planOf) })
    const allowed = ['free', 'free', 'free'].map((plan) => ask(plan)?.allowed)
    expect(allowed).toEqual([true, true, false])
    expect(ask('paid')?.outcomes[0]).toMatchObject({ allowed: true, limit: 5, remaining: 2 })
    expect(ask('free')?.allowed).toBe(false)
  })

  it('takes the default for any value but those of the table, and reports it on a short line', () => {
    const { limit, onInvalid } = asker({ limit: tiers(table, planOf) })
    const names = ['gold', '__proto__', 'toString', 'constructor', 'hasOwnProperty', 5, {}, true]
    const texts = ['a\nsluice: forged', '\r\n', '\u2028', '\u202e', '\x1b[2J', '\ud800', '\0']
    const known: readonly unknown[] = [undefined, null, '', ...Object.keys(table)]
    const examples = [...names, ...texts, 'x'.repeat(10_000)].map((plan) => [plan] as [unknown])
    const message = /^tiers of free, paid, root, default: there is no tier .*the default was used/
    const event = { code: 'SLUICE_TIER_UNKNOWN', message: expect.stringMatching(message) }
    const unknown = fc.anything().filter((plan) => !known.includes(plan))
    fc.assert(
      fc.property(unknown, (plan) => {
        expect(limit(plan)).toBe(1)
        expect(onInvalid).toHaveBeenCalledExactlyOnceWith(event)
        const shown = onInvalid.mock.lastCall?.[0].message
        expect(shown).toMatch(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]{50,300}$/u)
        onInvalid.mockClear()
      }),
      { examples },
    )
  })

  it('throws what the function throws', () => {
    const { ask } = asker({ limit: tiers({ default: 1 }, () => raise('no plan')) })
    expect(() => ask('')).toThrow('no plan')
  })

  it('calls a function once a request, also an async one that two policies share', async () => {
    const plan = vi.fn(async (request: object) => planOf(request))
    const limits = { a: tiers(table, plan), b: tiers({ paid: 9, default: 3 }, plan) }
    const policies = Object.entries(limits).map(([name, limit]) => ({ name, limit }))
    const guard = guardOf({ policies: policies.map((each) => ({ window: '1m', ...each })) })
    const check = () => guard.check({ ...exchange(), native: { plan: 'paid' } })
    const [{ decision }] = await Promise.all([check(), check()])
    expect(decision?.outcomes.map(({ limit }) => limit)).toEqual([5, 9])
    expect(plan).toHaveBeenCalledTimes(2)
  })

  it('accepts functions, schedules, adaptive limits and tables as entries', () => {
    vi.setSystemTime('2026-11-20T12:00:00Z')
    const rules = [{ from: '12:00', to: '13:00', limit: 13 }]
    const entries = {
      function: () => 11,
      schedule: schedule({ timeZone: 'UTC', default: 12, rules }),
      adaptive: adaptive({ signal: () => 0, low: 1, high: 2, min: 3, max: 14 }),
      table: tiers({ table: 15 }, planOf),
      default: 1,
    }
    const { limit, onInvalid } = asker({ limit: tiers(entries, planOf) })
    expect(['function', 'schedule', 'adaptive', 'table'].map(limit)).toEqual([11, 13, 14, 15])
    expect(onInvalid).not.toHaveBeenCalled()
  })

  it("uses the policy's default if an entry returns no limit, and reports it", () => {
    const broken = { broken: () => Number.NaN, default: 7 }
    const { limit, onInvalid } = asker({ limit: tiers(broken, planOf) })
    expect(limit('broken')).toBe(7)
    expect(onInvalid).toHaveBeenCalledExactlyOnceWith({
      code: 'SLUICE_LIMIT_INVALID',
      message: expect.stringContaining('(7) was used'),
    })
  })

  it('uses defaultLimit if the table has no fixed default', () => {
    const without = asker({ limit: tiers({ free: 2 }, planOf), defaultLimit: 9 })
    expect([without.limit('free'), without.limit('gold'), without.limit('')]).toEqual([2, 9, 9])
    const found = asker({ limit: tiers({ default: () => -1 }, planOf), defaultLimit: 9 })
    expect(found.limit('')).toBe(9)
  })

  it("is reduced by the policy's headroom, also for the default", () => {
    const { limit } = asker({ limit: tiers({ free: 100, default: 50 }, planOf), headroom: 0.1 })
    expect([limit('free'), limit('gold')]).toEqual([90, 45])
  })

  const free = { free: 1 }
  it.each<[object, RegExp, code?: string]>([
    [{}, /^tiers\(table\) must be a plain object of limits/, 'SLUICE_OPTION_INVALID'],
    [{ free: -1 }, /^tiers.free must be a whole number .* but is -1/],
    [{ free: 0.5 }, /^tiers.free .* but is 0.5/],
    [{ free: '9' }, /^tiers.free .* but is '9'/],
    [{ free: undefined }, /^tiers.free/],
    [
      { big: 2 ** 47, default: 1 },
      /^limit of 'default': tiers\(…\) .* 140737488355328/,
      'SLUICE_POLICY_RANGE',
    ],
    [free, /^defaultLimit .* beside tiers\(…\) .*add one to it: { …, default: 60 }/],
    [{ default: () => 1 }, /^defaultLimit/],
  ])('of %o name the place and the fix', (wrong, message, code = 'SLUICE_LIMIT_INVALID') => {
    expect(() => asker({ limit: tiers(wrong as never, planOf) })).toThrow(errorOf(message, code))
  })

  it('name the policy that needs a default, and what does not fit', () => {
    const policy = { window: '1m', limit: tiers(free, planOf) } as const
    expect(() => guardOf({ policies: [policy] })).toThrow(/^policies\[0\].defaultLimit/)
    expect(() => asker({ limit: 1, profiles: { plan: policy } })).toThrow(
      /^profiles.plan.defaultLimit/,
    )
    expect(() => asker({ limit: tiers(table, planOf), defaultLimit: 1 })).toThrow(
      errorOf(/^defaultLimit must be left out beside tiers/),
    )
    expect(() => tiers(free, 'plan' as never)).toThrow(errorOf(/must be a function of the request/))
    expect(() => tiers(null as never, planOf)).toThrow(errorOf(/^tiers\(table\) .* but is null/))
  })
})
