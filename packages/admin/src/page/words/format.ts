const whole = new Intl.NumberFormat('en')
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const daytime = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hour12: false })

/** Formats a number in full: `12,345`. */
export function count(value: number): string {
  return whole.format(value)
}

/** Formats a number in at most five characters: `12.3K`. */
export function brief(value: number): string {
  return value < 10 && !Number.isInteger(value) ? value.toFixed(1) : short.format(value)
}

/** Formats a share of 1 as a percentage: `3.4%`. */
export function percent(share: number): string {
  const value = share * 100
  if (value > 0 && value < 0.1) return '<0.1%'
  return `${value < 10 && value > 0 ? value.toFixed(1) : Math.round(value)}%`
}

const units: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
]

/** Formats a duration in its largest unit: `1.5 min`. */
export function duration(ms: number): string {
  const [unit, size] = units.find(([, each]) => ms >= each) ?? ['ms', 1]
  const value = ms / size
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : Number(value.toPrecision(2))} ${unit}`
}

/** Formats a latency, down to microseconds: `0.25 ms`, `6 µs`. */
export function latency(ms: number): string {
  if (ms > 0 && ms < 0.1) return `${Number((ms * 1_000).toPrecision(2))} µs`
  return ms < 1_000 ? `${Number(ms.toPrecision(2))} ms` : duration(ms)
}

/** Formats a time relative to now: `2 min ago`, `in 3 h`. */
export function distance(at: number, now: number): string {
  const ms = Math.abs(now - at)
  if (ms < 1_500) return 'just now'
  const [unit, size] = units.find(([, each]) => ms >= each) ?? ['s', 1_000]
  const text = `${Math.floor(ms / size)} ${unit}`
  return at > now ? `in ${text}` : `${text} ago`
}

/** Formats a time in full, in the reader's time zone. */
export function moment(at: number): string {
  return clock.format(at)
}

/** Formats an end time: the time of day, with the date if it is another day. */
export function endText(at: number): string {
  return Math.abs(at - Date.now()) < 43_200_000 ? clockTime(at) : moment(at)
}

/** Formats the time of day: `14:03:20`. */
export function clockTime(at: number): string {
  return daytime.format(at)
}

/** Formats a policy value: objects as JSON, nothing as a dash. */
export function plain(value: unknown): string {
  if (value === undefined || value === null) return '–'
  if (typeof value === 'number') return count(value)
  return typeof value === 'string' ? value : JSON.stringify(value)
}
