import { tzOffset } from '@date-fns/tz'
import { invalid, knownFields } from '@sluice/core'
import type { LimitValue } from './source.ts'
import { type FoundLimit, isLimitValue, type LimitSource, largestOf } from './source.ts'
import { type ScheduleRule, type TimeSlot, timeSlot } from './time-slot.ts'

export interface ScheduleOptions {
  /** The zone whose clocks are meant, by its IANA name: `'Europe/Berlin'`, `'UTC'`. */
  timeZone: string
  /** The limit while no rule applies: a whole number ≥ 0, or `unlimited`. */
  default: LimitValue
  /** Of several that apply, the first one counts. */
  rules: readonly ScheduleRule[]
}

/** A rule, made ready. */
interface Rule {
  readonly slot: TimeSlot
  readonly limit: LimitValue
}

const minuteMs = 60_000

/**
 * A limit that depends on the time of day, as clocks show it in one zone, summer time included. It is looked up once a minute.
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

function ruleOf(options: ScheduleRule, index: number): Rule {
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
