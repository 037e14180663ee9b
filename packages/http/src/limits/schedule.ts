import { tzOffset } from '@date-fns/tz'
import { invalid, knownFields, SluiceError } from '@sluice/core'
import {
  type FoundLimit,
  isLimitValue,
  type LimitSource,
  type LimitValue,
  largestOf,
} from './source.ts'

/** Options of `schedule`. */
export interface ScheduleOptions {
  /** The zone whose clocks are meant, by its IANA name: `'Europe/Berlin'`, `'UTC'`. */
  timeZone: string
  /** The limit while no rule applies: a whole number ≥ 0, or `unlimited`. */
  default: LimitValue
  /** Of several that apply, the first one counts. */
  rules: readonly ScheduleRule[]
}

const minuteMs = 60_000

/**
 * A limit that depends on the time of day, as clocks show it in one zone, summer time included. It
 * is looked up once a minute.
 * @example
 * limit: schedule({
 *   timeZone: 'Europe/Berlin',
 *   default: 100,
 *   rules: [{ days: ['mon', 'tue', 'wed', 'thu', 'fri'], from: '09:00', to: '18:00', limit: 50 }],
 * })
 * @throws SluiceError when the zone does not exist, or a rule is wrong
 */
export function schedule(options: ScheduleOptions): LimitSource {
  knownFields(options, 'schedule', ['timeZone', 'default', 'rules'])
  const { default: otherwise } = options
  checkZone(options.timeZone)
  checkLimit(otherwise, 'schedule.default')
  if (!Array.isArray(options.rules) || options.rules.length === 0) {
    const legal = `a list of rules, as in [{ from: '09:00', to: '18:00', limit: 50 }]`
    throw invalid({ option: 'schedule.rules' }, options.rules, legal)
  }
  const rules = options.rules.map(ruleOf)
  let minute = Number.NaN
  let found: FoundLimit = { value: otherwise, reduced: false }

  function find(): FoundLimit {
    const now = Math.floor(Date.now() / minuteMs)
    if (now === minute) return found
    minute = now
    const local = new Date((now + offset(options.timeZone, now)) * minuteMs)
    const rule = rules.find(({ slot }) => slot.covers(local))
    found = { value: rule ? rule.limit : otherwise, reduced: false }
    return found
  }

  return {
    kind: 'schedule(…)',
    declared: otherwise,
    largest: largestOf([otherwise, ...rules.map(({ limit }) => limit)]),
    find,
  }
}

function ruleOf(
  options: ScheduleRule,
  index: number,
): { readonly slot: TimeSlot; readonly limit: LimitValue } {
  const where = `schedule.rules[${index}]`
  knownFields(options, where, ['days', 'from', 'to', 'limit'])
  checkLimit(options.limit, `${where}.limit`)
  return { slot: timeSlot(options, where), limit: options.limit }
}

function checkLimit(limit: unknown, option: string): void {
  if (isLimitValue(limit)) return
  throw invalid({ option, code: 'SLUICE_LIMIT_INVALID' }, limit, 'a whole number ≥ 0, or unlimited')
}

function checkZone(timeZone: unknown): void {
  // The library also takes any text that has an offset in it, such as 'Berlin+01'.
  const isName = typeof timeZone === 'string' && /^[A-Za-z][\w+/-]*$/.test(timeZone)
  if (isName && isKnown(timeZone)) return
  const legal = `the IANA name of a time zone, such as 'Europe/Berlin', 'America/New_York' or 'UTC'`
  throw invalid({ option: 'schedule.timeZone' }, timeZone, legal)
}

function isKnown(timeZone: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone }) !== undefined
  } catch {
    // A RangeError says that there is no such zone.
    return false
  }
}

/** Minutes that clocks of a zone are ahead of UTC in a minute since 1970. */
function offset(timeZone: string, minute: number): number {
  return tzOffset(timeZone, new Date(minute * minuteMs))
}

const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const

/** A day of the week. */
export type Weekday = (typeof weekdays)[number]

/** A limit for a part of the week. */
export interface ScheduleRule {
  /** The days on which it begins: `['sat', 'sun']`. @default every day */
  days?: readonly Weekday[] | undefined
  /** Time of day at which it begins: `'09:00'`. @default '00:00' */
  from?: string | undefined
  /** Time of day at which it ends. Before `from`: on the next day. @default '24:00' */
  to?: string | undefined
  /** The limit meanwhile: a whole number ≥ 0, or `unlimited`. */
  limit: LimitValue
}

interface TimeSlot {
  /** @param local a date whose fields in UTC show what clocks show */
  covers(local: Date): boolean
}

const dayMinutes = 24 * 60

/** @throws SluiceError that names the rule, when a day or a time is wrong, or no time is left */
function timeSlot({ days, from, to }: Omit<ScheduleRule, 'limit'>, where: string): TimeSlot {
  if (days === undefined && from === undefined && to === undefined) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `${where} would always apply: give it days, or from and to; use schedule.default for a limit that always applies`,
    )
  }
  const begin = from === undefined ? 0 : minuteOf(from, `${where}.from`, dayMinutes - 1)
  const end = to === undefined ? dayMinutes : minuteOf(to, `${where}.to`, dayMinutes)
  if (begin === end) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `${where}: from and to are both '${from}', which leaves nothing; for a whole day leave both out`,
    )
  }
  const begins = new Set(days === undefined ? weekdays.keys() : daysOf(days, `${where}.days`))
  return {
    covers(local) {
      const minute = local.getUTCHours() * 60 + local.getUTCMinutes()
      const today = local.getUTCDay()
      if (begin < end) return begins.has(today) && begin <= minute && minute < end
      const yesterday = (today + 6) % 7
      return (begins.has(today) && begin <= minute) || (begins.has(yesterday) && minute < end)
    },
  }
}

function daysOf(days: unknown, option: string): readonly number[] {
  const names: readonly unknown[] = weekdays
  const numbers = Array.isArray(days) ? days.map((day: unknown) => names.indexOf(day)) : []
  if (numbers.length > 0 && !numbers.includes(-1)) return numbers
  const wrong = Array.isArray(days) && days.length > 0 ? days[numbers.indexOf(-1)] : days
  throw invalid({ option }, wrong, `a list of ${weekdays.map((day) => `'${day}'`).join(', ')}`)
}

function minuteOf(time: unknown, option: string, last: number): number {
  const [, hours, minutes] = (typeof time === 'string' && /^(\d\d):([0-5]\d)$/.exec(time)) || []
  const minute = Number(hours) * 60 + Number(minutes)
  if (minute <= last) return minute
  const latest = last === dayMinutes ? '24:00' : '23:59'
  throw invalid({ option }, time, `a time of day from '00:00' to '${latest}', such as '09:00'`)
}
