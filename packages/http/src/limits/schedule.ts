import {
  invalid,
  type Option,
  type OptionsOf,
  objectOption,
  type RequiredOption,
  type SettingsOf,
  SluiceError,
  textOption,
} from '@sluice/core'
import {
  type FoundLimit,
  isLimitValue,
  type LimitSource,
  type LimitValue,
  largestOf,
} from './source.ts'

const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const

const names: readonly string[] = weekdays

/** A day of the week. */
export type Weekday = (typeof weekdays)[number]

class RuleTable {
  /** Days on which the rule begins: `['sat', 'sun']`. @default every day */
  days?: Option<readonly Weekday[], readonly Weekday[]> = daysOf
  /** Time of day at which the rule begins: `'09:00'`. @default '00:00' */
  from?: Option<string, string> = textOption(
    '00:00',
    /^(?:[01]\d|2[0-3]):[0-5]\d$/,
    "a time of day from '00:00' to '23:59', such as '09:00'",
  )
  /** Time of day at which the rule ends (the next day if before `from`). @default '24:00' */
  to?: Option<string, string> = textOption(
    '24:00',
    /^(?:(?:[01]\d|2[0-3]):[0-5]\d|24:00)$/,
    "a time of day from '00:00' to '24:00', such as '09:00'",
  )
  /** Limit while the rule applies: a whole number ≥ 0, or `unlimited`. */
  limit: RequiredOption<LimitValue> = limitOf
}

/** A limit for part of the week. */
export interface ScheduleRule extends OptionsOf<RuleTable> {}

type Rule = SettingsOf<RuleTable>

class ScheduleTable {
  /** IANA name of the time zone: `'Europe/Berlin'`, `'UTC'`. */
  timeZone: RequiredOption<string, Intl.DateTimeFormat> = clockOf
  /** Limit while no rule applies: a whole number ≥ 0, or `unlimited`. */
  default: RequiredOption<LimitValue> = limitOf
  /** The rules. If several apply, the first one is used. */
  rules: RequiredOption<readonly ScheduleRule[], readonly Rule[]> = (rules, option) => {
    if (Array.isArray(rules) && rules.length > 0) {
      return rules.map((rule, index) => ruleOf(rule, `${option}[${index}]`))
    }
    const legal = `a list of rules, as in [{ from: '09:00', to: '18:00', limit: 50 }]`
    throw invalid({ option }, rules, legal)
  }
}

/** Options of `schedule`. */
export interface ScheduleOptions extends OptionsOf<ScheduleTable> {}

const minuteMs = 60_000

/**
 * A limit that depends on the local time in one time zone, including daylight saving time. It is
 * looked up once a minute.
 * @example
 * limit: schedule({
 *   timeZone: 'Europe/Berlin',
 *   default: 100,
 *   rules: [{ days: ['mon', 'tue', 'wed', 'thu', 'fri'], from: '09:00', to: '18:00', limit: 50 }],
 * })
 * @throws SluiceError if the zone does not exist or a rule is wrong
 */
export function schedule(options: ScheduleOptions): LimitSource {
  const settings = objectOption(new ScheduleTable())(options, 'schedule')
  const { timeZone: clock, default: declared, rules } = settings
  let minute = Number.NaN
  let found: FoundLimit = { value: declared, reduced: false }

  function find(): FoundLimit {
    const now = Math.floor(Date.now() / minuteMs)
    if (now === minute) return found
    minute = now
    const shown = clock.formatToParts(now * minuteMs).filter(({ type }) => type !== 'literal')
    const [day = '', hour = '', minutes = ''] = shown.map(({ value }) => value)
    const today = names.indexOf(day.toLowerCase())
    const rule = rules.find((each) => applies(each, today, `${hour}:${minutes}`))
    found = { value: rule ? rule.limit : declared, reduced: false }
    return found
  }

  const largest = largestOf([declared, ...rules.map(({ limit }) => limit)])
  return { kind: 'schedule(…)', declared, largest, find }
}

/** Times in this format sort as strings. */
function applies({ days, from, to }: Rule, today: number, time: string): boolean {
  const begins = (day: number) => days.some((name) => name === names[day % 7])
  if (from < to) return begins(today) && from <= time && time < to
  return (begins(today) && from <= time) || (begins(today + 6) && time < to)
}

/** @throws SluiceError that names the rule, if a day or time is wrong, or it never applies */
function ruleOf(written: ScheduleRule, where: string): Rule {
  const rule = objectOption(new RuleTable())(written, where)
  const { days, from, to } = written
  if (days === undefined && from === undefined && to === undefined) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `${where} would always apply: set days, or from and to; use schedule.default for a limit that always applies`,
    )
  }
  if (rule.from !== rule.to) return rule
  throw new SluiceError(
    'SLUICE_OPTION_INVALID',
    `${where}: from and to are both '${rule.from}', which leaves no time; for a whole day, omit both`,
  )
}

function limitOf(limit: LimitValue, option: string): LimitValue {
  if (isLimitValue(limit)) return limit
  throw invalid({ option, code: 'SLUICE_LIMIT_INVALID' }, limit, 'a whole number ≥ 0, or unlimited')
}

/** Returns a time zone's clock. In Node 20, offsets such as +01:00 are not time zones. */
function clockOf(timeZone: unknown, option: string): Intl.DateTimeFormat {
  const time = { weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const
  if (typeof timeZone === 'string' && /^[A-Za-z][\w+/-]*$/.test(timeZone)) {
    try {
      return new Intl.DateTimeFormat('en-US', { timeZone, ...time })
    } catch {
      // An unknown zone is rejected below.
    }
  }
  const legal = `the IANA name of a time zone, such as 'Europe/Berlin', 'America/New_York' or 'UTC'`
  throw invalid({ option }, timeZone, legal)
}

function daysOf(days: readonly Weekday[] | undefined, option: string): readonly Weekday[] {
  if (days === undefined) return weekdays
  const isList = Array.isArray(days) && days.length > 0
  const wrong: readonly unknown[] = isList ? days.filter((day) => !names.includes(day)) : [days]
  if (wrong.length === 0) return [...days]
  const legal = `a list of ${names.map((day) => `'${day}'`).join(', ')}`
  throw invalid({ option }, wrong[0], legal)
}
