import { invalid, knownFields, oneOf } from '../options/options.ts'

/** A window of the calendar, such as `{ every: 'month', zone: 'Europe/Rome' }`. */
export interface CalendarWindow {
  /** Windows begin at midnight of each day, each Monday, or the first day of each month. */
  every: 'day' | 'week' | 'month'
  /** IANA name of the time zone, such as `'Europe/Rome'` or `'UTC'`. */
  zone: string
}

/** Starts (ms) of four windows: the previous one, the current one, and the next two. */
type Bounds = readonly [beforeMs: number, startMs: number, endMs: number, nextEndMs: number]

const dayMs = 86_400_000

/** Usual lengths (ms); for months, the longest. Clock changes make some an hour longer. */
export const calendarMs: Readonly<Record<CalendarWindow['every'], number>> = {
  day: dayMs,
  week: 7 * dayMs,
  month: 31 * dayMs,
}

/** @throws SluiceError for an unknown period or time zone */
export function calendarOf(window: unknown, option: string): Calendar | undefined {
  if (typeof window !== 'object' || window === null) return undefined
  knownFields(window, option, ['every', 'zone'])
  const every: unknown = Reflect.get(window, 'every')
  const zone: unknown = Reflect.get(window, 'zone')
  const period = oneOf(every, { option: `${option}.every` }, ['day', 'week', 'month'])
  // Node 20 rejects offsets such as +01:00 as zones.
  if (typeof zone === 'string' && /^[A-Za-z][\w+/-]*$/.test(zone)) {
    try {
      return new Calendar(period, zone)
    } catch {
      // An unknown zone is rejected below.
    }
  }
  const legal = "an IANA time zone, such as 'Europe/Rome' or 'UTC'"
  throw invalid({ option: `${option}.zone` }, zone, legal)
}

/** Finds the windows of a calendar, and remembers two. */
export class Calendar implements CalendarWindow {
  readonly every: CalendarWindow['every']
  readonly zone: string
  readonly #format: Intl.DateTimeFormat
  #last: Bounds = [0, 0, 0, 0]
  #other = this.#last

  constructor(every: CalendarWindow['every'], zone: string) {
    this.every = every
    this.zone = zone
    this.#format = formatIn(zone)
  }

  /** Returns the bounds of the window at `ms`, and of its neighbours. */
  boundsAt(ms: number): Bounds {
    if (isIn(this.#last, ms)) return this.#last
    const found = isIn(this.#other, ms) ? this.#other : this.#find(ms)
    this.#other = this.#last
    this.#last = found
    return found
  }

  #find(ms: number): Bounds {
    const { every } = this
    const local = new Date(ms + this.#offsetMs(ms))
    const [year, month, day] = [local.getUTCFullYear(), local.getUTCMonth(), local.getUTCDate()]
    const monday = day - ((local.getUTCDay() + 6) % 7)
    const start = (later: number): number => {
      if (every === 'month') return this.#midnightMs(Date.UTC(year, month + later))
      const date = every === 'week' ? monday + 7 * later : day + later
      return this.#midnightMs(Date.UTC(year, month, date))
    }
    // If the clock goes back across midnight, the day that has begun continues.
    const n = start(1) <= ms ? 1 : 0
    return [start(n - 1), Math.max(0, start(n)), start(n + 1), start(n + 2)]
  }

  /** The first moment of a date, given as its midnight in UTC. */
  #midnightMs(dateMs: number): number {
    const before = dateMs - this.#offsetMs(dateMs - dayMs)
    const after = dateMs - this.#offsetMs(dateMs + dayMs)
    let low = Math.min(before, after)
    let high = Math.max(before, after)
    for (const ms of [low, high]) if (ms + this.#offsetMs(ms) === dateMs) return ms
    // The clock skips midnight, so the date begins at that moment.
    const offsetMs = this.#offsetMs(low)
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.#offsetMs(middle) === offsetMs) low = middle
      else high = middle
    }
    return high
  }

  /** The zone's offset from UTC. */
  #offsetMs(ms: number): number {
    const numbers = this.#format.format(ms).match(/\d+/g) ?? []
    const [month = 1, day, year = 1970, ...time] = numbers.map(Number)
    return Date.UTC(year, month - 1, day, ...time) - Math.floor(ms / 1000) * 1000
  }
}

function isIn([, startMs, endMs]: Bounds, ms: number): boolean {
  return ms >= startMs && ms < endMs
}

function formatIn(timeZone: string): Intl.DateTimeFormat {
  const [number, two] = ['numeric', '2-digit'] as const
  const date = { year: number, month: two, day: two } as const
  const time = { hour: two, minute: two, second: two, hourCycle: 'h23' } as const
  return new Intl.DateTimeFormat('en-US', { timeZone, ...date, ...time })
}
