const months = 'JanFebMarAprMayJunJulAugSepOctNovDec'

/** Parses log times. The last one is cached, since many lines share the same second. */
export class TimeReader {
  #text = ''
  #ms = Number.NaN

  read(text: string): number {
    if (text !== this.#text) {
      this.#text = text
      this.#ms = timeMsOf(text)
    }
    return this.#ms
  }

  readAt(line: string, from: number, to: number): number {
    const isSame = to - from === this.#text.length && line.startsWith(this.#text, from)
    return isSame ? this.#ms : this.read(line.slice(from, to))
  }
}

function timeMsOf(text: string): number {
  if (text.charCodeAt(2) === slash) return ofCommonLog(text)
  if (/^\d+(\.\d+)?$/.test(text)) return ofNumber(Number(text))
  // `Date.parse` reads a time without a zone as local time; logs mean UTC.
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/.test(text)
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)/.exec(text) ?? []
  // `Date.parse` reads 31 February as 3 March.
  if (day !== undefined && !isDate(Number(year), Number(month) - 1, Number(day))) return Number.NaN
  return Math.floor(Date.parse(hasZone ? text : `${text}Z`))
}

const slash = 47

/** `10/Oct/2000:13:55:36 -0700` */
function ofCommonLog(text: string): number {
  const month = months.indexOf(text.slice(3, 6)) / 3
  const at = (from: number, to: number): number => Number(text.slice(from, to))
  const sign = text[21] === '-' ? -1 : 1
  const zoneMinutes = sign * (at(22, 24) * 60 + at(24, 26))
  const isWhole = text.length === 26 && Number.isInteger(month) && month >= 0
  if (!isWhole) return Number.NaN
  const [year, day, hour, minute, second] = [
    at(7, 11),
    at(0, 2),
    at(12, 14),
    at(15, 17),
    at(18, 20),
  ]
  // A leap second has the number 60.
  const isOnClock = hour <= 23 && minute <= 59 && second <= 60
  if (!isOnClock || !isDate(year, month, day)) return Number.NaN
  return Date.UTC(year, month, day, hour, minute, second) - zoneMinutes * 60_000
}

/** @param month from 0 */
function isDate(year: number, month: number, day: number): boolean {
  const date = new Date(Date.UTC(year, month, day))
  return date.getUTCMonth() === month && date.getUTCDate() === day
}

/** Infers the unit of a time since 1970 from its size: s, ms, µs or ns. */
function ofNumber(time: number): number {
  if (!(time >= 0)) return Number.NaN
  if (time < 1e11) return Math.round(time * 1e3)
  if (time < 1e14) return Math.round(time)
  return Math.round(time < 1e17 ? time / 1e3 : time / 1e6)
}
