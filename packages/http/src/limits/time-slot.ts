import { invalid, SluiceError } from '@sluice/core'
import type { LimitValue } from './source.ts'

const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const

export type Weekday = (typeof weekdays)[number]

/** A limit for a part of the week. */
export interface ScheduleRule {
  /** The days on which it begins: `['sat', 'sun']`. @default every day */
  days?: readonly Weekday[]
  /** When it begins: `'09:00'`. @default '00:00' */
  from?: string
  /** When it is over, `'24:00'` at most: `'18:00'`. Before `from`: on the next day. @default '24:00' */
  to?: string
  /** The limit meanwhile: a whole number ≥ 0, or `unlimited`. */
  limit: LimitValue
}

/** A part of the week. */
export interface TimeSlot {
  /** @param local a date whose fields in UTC show what clocks show */
  covers(local: Date): boolean
}

const dayMinutes = 24 * 60

/** @throws SluiceError that names the rule and the fix, when a day or a time is none, or both times are the same */
export function timeSlot({ days, from, to }: Omit<ScheduleRule, 'limit'>, where: string): TimeSlot {
  if (days === undefined && from === undefined && to === undefined) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `${where} would always apply: give it days, or from and to; what always applies is schedule.default`,
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
