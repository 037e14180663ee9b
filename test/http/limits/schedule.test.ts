import { type ScheduleOptions, schedule } from '@sluice/http'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { exchange, guardOf, now } from '../exchange.ts'
import { errorOf, type Wrong } from '../wrong-options.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

/** The limit of a schedule at a moment. */
function limitAt(options: ScheduleOptions): (moment: string | number) => number | undefined {
  const guard = guardOf({ window: '1s', limit: schedule(options) })
  return (moment) => {
    vi.setSystemTime(moment)
    return now(guard.check(exchange()) as never).decision?.outcomes[0]?.limit
  }
}

const week = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
const berlin = { timeZone: 'Europe/Berlin', default: 100 }

/** The limit at a moment of a schedule in UTC, with a default of 1. */
function inUtc(...rules: ScheduleOptions['rules']) {
  return limitAt({ timeZone: 'UTC', default: 1, rules })
}

describe('a schedule', () => {
  it('ends at midnight with 24:00, or with 00:00, or without an end', () => {
    const moments = ['2026-11-22T19:59:00Z', '2026-11-22T23:59:00Z', '2026-11-23T00:00:00Z']
    for (const end of [{ to: '24:00' }, { to: '00:00' }, {}]) {
      const at = inUtc({ days: ['sun'], from: '20:00', ...end, limit: 2 })
      expect(moments.map(at)).toEqual([1, 2, 1])
    }
  })

  it('follows the local clock at daylight saving changes', () => {
    const at = limitAt({ ...berlin, rules: [{ from: '02:00', to: '03:00', limit: 5 }] })
    // In the night of 29 March clocks go from 02:00 to 03:00, so there is no such hour.
    expect(['2026-03-29T00:59:00Z', '2026-03-29T01:00:00Z'].map(at)).toEqual([100, 100])
    // In the night of 25 October they go from 03:00 back to 02:00, so there are two.
    const october = ['2026-10-25T00:00:00Z', '2026-10-25T01:30:00Z', '2026-10-25T02:00:00Z']
    expect(october.map(at)).toEqual([5, 5, 100])
  })

  it('takes the first rule that applies', () => {
    const at = inUtc({ from: '12:00', to: '13:00', limit: 2 }, { days: ['fri'], limit: 3 })
    const moments = ['20T12:30', '20T13:00', '21T12:30', '21T13:00']
    expect(moments.map((moment) => at(`2026-11-${moment}:00Z`))).toEqual([2, 3, 2, 1])
  })

  it('agrees with Intl on the time of day and the day on which a rule begins, in any zone at any minute', () => {
    const zones =
      'Europe/Berlin America/New_York Asia/Kolkata Australia/Lord_Howe America/St_Johns Pacific/Apia Africa/Casablanca Pacific/Auckland UTC'
    const zone = fc.constantFrom(...zones.split(' '))
    const minute = fc.integer({ min: 0, max: 24 * 60 - 1 })
    const moment = fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2035, 0) })
    const some = fc.subarray([...week], { minLength: 1 })
    fc.assert(
      fc.property(zone, minute, minute, moment, some, (timeZone, begin, end, ms, days) => {
        fc.pre(begin !== end)
        const [from, to] = [clock(begin), clock(end)]
        const at = limitAt({ timeZone, default: 1, rules: [{ days, from, to, limit: 2 }] })
        const time = { timeZone, hour: '2-digit', minute: '2-digit' } as const
        const shown = new Intl.DateTimeFormat('en-GB', time).format(ms)
        const weekday = new Intl.DateTimeFormat('en-GB', { timeZone, weekday: 'short' }).format(ms)
        const day = week.indexOf(weekday.toLowerCase() as (typeof week)[number])
        const isOn = (at: number) => days.some((one) => one === week.at(at))
        const isOver = begin < end ? to <= shown : false
        const begins = from <= shown && !isOver && isOn(day)
        // Over midnight it lasts into the day after.
        const lasts = begin > end && shown < to && isOn(day - 1)
        expect(at(ms)).toBe(begins || lasts ? 2 : 1)
      }),
      { numRuns: 500 },
    )
  })

  it('looks up the time once a minute, and at once when the clock is set back', () => {
    const at = inUtc({ from: '12:00', to: '13:00', limit: 2 })
    at('2026-11-20T11:58:00Z')
    const read = vi.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts')
    for (let second = 0; second < 60; second += 1)
      at(Date.parse('2026-11-20T11:59:00Z') + second * 1_000)
    expect(read).toHaveBeenCalledTimes(1)
    read.mockRestore()
    expect(at('2026-11-20T12:00:00Z')).toBe(2)
    expect(at('2026-11-20T11:00:00Z')).toBe(1)
  })

  it('keeps the count when the limit changes, and is not reduced capacity', () => {
    const rules = [{ from: '12:00', to: '13:00', limit: 1 }]
    const limit = schedule({ timeZone: 'UTC', default: 3, rules })
    const guard = guardOf({ name: 'day', window: '1d', limit })
    const ask = () => now(guard.check(exchange()) as never)
    vi.setSystemTime('2026-11-20T11:59:00Z')
    expect([ask(), ask()].map(({ decision }) => decision?.allowed)).toEqual([true, true])
    vi.setSystemTime('2026-11-20T12:00:00Z')
    expect(ask().verdict).toMatchObject({ action: 'reject', status: 429 })
    vi.setSystemTime('2026-11-20T13:00:00Z')
    expect(ask().decision?.outcomes[0]).toMatchObject({ allowed: true, limit: 3, remaining: 0 })
  })

  const rule = { from: '09:00', to: '18:00', limit: 5 }
  const notRules = /^schedule.rules must be a list of rules/
  const days = /^schedule.rules\[0\].days must be a list of 'sun', 'mon'.* but is /
  it.each<Wrong>([
    [{ timeZone: 'Europe/Berlim' }, /^schedule.timeZone must be the IANA name .*Berlim'/],
    ...['', undefined, 'Berlin+01:00', '+01:00'].map(
      (timeZone): Wrong => [{ timeZone }, /^schedule.timeZone/],
    ),
    [{ default: undefined }, /^schedule.default must be a whole number/, 'SLUICE_LIMIT_INVALID'],
    [{ default: -1 }, /^schedule.default .* but is -1/, 'SLUICE_LIMIT_INVALID'],
    [{ rules: [] }, notRules],
    [{ rules: rule }, notRules],
    [{ zone: 'UTC' }, /schedule: there is no option 'zone'/, 'SLUICE_OPTION_UNKNOWN'],
    [{ rules: [{ ...rule, limit: 0.5 }] }, /^schedule.rules\[0\].limit/, 'SLUICE_LIMIT_INVALID'],
    [{ rules: [rule, { ...rule, from: '9:00' }] }, /^.*\[1\].from must be a time of day .*'9:00'/],
    [{ rules: [{ ...rule, from: '24:00' }] }, /^schedule.rules\[0\].from .* to '23:59'/],
    [{ rules: [{ ...rule, to: '24:01' }] }, /^schedule.rules\[0\].to .* to '24:00'/],
    [{ rules: [{ ...rule, to: '18:60' }] }, /^schedule.rules\[0\].to/],
    [{ rules: [{ ...rule, to: 18 }] }, /^schedule.rules\[0\].to .* but is 18/],
    [{ rules: [{ ...rule, to: '09:00' }] }, /^schedule.rules\[0\]: from and to are both '09:00'/],
    [{ rules: [{ from: '00:00', to: '00:00', limit: 5 }] }, /for a whole day, omit both/],
    [{ rules: [{ ...rule, days: ['Mon'] }] }, days],
    [{ rules: [{ ...rule, days: [] }] }, days],
    [{ rules: [{ ...rule, days: 'mon' }] }, days],
    [{ rules: [{ limit: 5 }] }, /^schedule.rules\[0\] would always apply/],
    [{ rules: [{ ...rule, day: 'mon' }] }, /did you mean 'days'/, 'SLUICE_OPTION_UNKNOWN'],
  ])('is rejected if %o is wrong, with the fix', (wrong, message, code) => {
    const options = { ...berlin, rules: [rule], ...wrong } as ScheduleOptions
    expect(() => schedule(options)).toThrow(errorOf(message, code))
  })
})

function clock(minute: number): string {
  const pad = (number: number) => String(number).padStart(2, '0')
  return `${pad(Math.floor(minute / 60))}:${pad(minute % 60)}`
}
