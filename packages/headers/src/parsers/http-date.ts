// RFC 9110 §5.6.7: senders use the first form, recipients must accept all three. Date.parse accepts
// many more formats, and reads asctime as local time, so it cannot be used.
const time = '(?<time>\\d\\d:\\d\\d:\\d\\d)'
const forms = [
  /** `Sun, 06 Nov 1994 08:49:37 GMT` */
  new RegExp(`^[A-Z][a-z]{2}, (?<day>\\d\\d) (?<month>[A-Z][a-z]{2}) (?<year>\\d{4}) ${time} GMT$`),
  /** `Sunday, 06-Nov-94 08:49:37 GMT` */
  new RegExp(
    `^[A-Z][a-z]{5,8}, (?<day>\\d\\d)-(?<month>[A-Z][a-z]{2})-(?<year>\\d\\d) ${time} GMT$`,
  ),
  /** `Sun Nov  6 08:49:37 1994`, in UTC */
  new RegExp(`^[A-Z][a-z]{2} (?<month>[A-Z][a-z]{2}) (?<day>[ \\d]\\d) ${time} (?<year>\\d{4})$`),
]

/**
 * Returns milliseconds since 1970; `undefined` for a string that is not an HTTP-date, or an
 * impossible day.
 */
export function parseHttpDate(text: string, nowMs: number): number | undefined {
  for (const form of forms) {
    const groups = form.exec(text)?.groups
    if (groups !== undefined) return instantOf(groups, nowMs)
  }
  return undefined
}

function instantOf(groups: Readonly<Record<string, string>>, nowMs: number): number | undefined {
  const { day = '', month, year = '', time = '' } = groups
  const fullYear = year.length === 2 ? nearYear(Number(year), nowMs) : year
  // A leap second.
  const isLeap = time.endsWith(':60')
  const sound = isLeap ? time.replace(/60$/, '59') : time
  const text = `${day.replace(' ', '0')} ${month} ${fullYear} ${sound} GMT`
  const date = new Date(text)
  // An impossible day becomes another one.
  return date.toUTCString().endsWith(text) ? date.getTime() + Number(isLeap) * 1000 : undefined
}

/**
 * A two-digit year that seems more than 50 years ahead is the most recent such year in the past
 * (RFC 9110 §5.6.7).
 */
function nearYear(twoDigits: number, nowMs: number): number {
  const thisYear = new Date(nowMs).getUTCFullYear()
  const year = thisYear - (thisYear % 100) + twoDigits
  return year > thisYear + 50 ? year - 100 : year
}
