import { CliError } from '../terminal/exit-codes.ts'
import { detached, isMethod, type LogFormat, present, statusOf, withoutPort } from './log-format.ts'
import type { FieldSource, LineFields } from './log-request.ts'
import { TimeReader } from './times.ts'

/** A variable of a pattern, and the text after its value. */
interface Part {
  readonly name: string
  readonly end: string
}

type TextOptions = Pick<LogFormat, 'name'> & Partial<Pick<LogFormat, 'timeIs'>>

/**
 * Creates a format from an nginx `log_format` pattern: text with `$variables`.
 * @throws CliError if the values cannot be separated, or are not enough for a request
 */
export function textFormat(pattern: string, { name, timeIs = 'end' }: TextOptions): LogFormat {
  const values = new LineValues(pattern)
  const { names } = values
  const places = placesOf(names)
  const times = new TimeReader()

  function timeAt(line: string, place: number): number {
    return times.readAt(line, values.from(place), values.to(place))
  }

  function durationOf(line: string): number | undefined {
    return places.durationMs === -1
      ? msOf(values.text(line, places.duration), 1_000)
      : msOf(values.text(line, places.durationMs), 1)
  }

  function read(line: string): LineFields | string {
    const mistake = values.find(line)
    if (mistake !== undefined) return mistake
    const request = requestOf(line, values, places)
    if (!request) return 'it has no HTTP request line'
    const { method } = request
    const timeMs = timeAt(line, places.time)
    if (Number.isNaN(timeMs)) return `it has no time at $${names[places.time]}`
    const beginMs = places.begin === -1 ? timeMs : timeAt(line, places.begin)
    if (Number.isNaN(beginMs)) return `it has no time at $${names[places.begin]}`
    const address = present(values.text(line, places.address))
    if (address?.includes(' ')) return 'it has no address where the format has one'
    return {
      timeMs: beginMs,
      durationMs: places.begin === -1 ? durationOf(line) : Math.max(0, timeMs - beginMs),
      address: address && withoutPort(address),
      method,
      status: statusOf(values.text(line, places.status)),
      source: new TextFields(line, values, request),
    }
  }

  return { name, encoding: 'latin1', timeIs, read }
}

/** Finds the values of lines by the variables of a pattern. It holds the values of one line. */
class LineValues {
  readonly names: readonly string[]
  readonly #begin: string
  readonly #parts: readonly Part[]
  /** Start and end of each value in the line. */
  readonly #bounds: Uint32Array
  #line: string | undefined

  constructor(pattern: string) {
    const { begin, parts } = partsOf(pattern)
    this.names = parts.map((part) => part.name)
    this.#begin = begin
    this.#parts = parts
    this.#bounds = new Uint32Array(2 * parts.length)
  }

  /** Finds the values of a line. @returns the reason if that fails */
  find(line: string): string | undefined {
    if (line === this.#line) return undefined
    this.#line = undefined
    if (!line.startsWith(this.#begin)) return `it does not begin with '${this.#begin}'`
    let from = this.#begin.length
    for (let index = 0; index < this.#parts.length; index += 1) {
      const { name = '', end = '' } = this.#parts[index] ?? {}
      const to = end === '' ? line.length : endOf(line, end, from)
      if (to === -1) return `'${end}' does not follow $${name}`
      this.#bounds[2 * index] = from
      this.#bounds[2 * index + 1] = to
      from = to + end.length
    }
    if (from !== line.length) return 'it continues after the last value'
    this.#line = line
    return undefined
  }

  /** Returns the start of a value in the current line. */
  from(place: number): number {
    return this.#bounds[2 * place] ?? 0
  }

  to(place: number): number {
    return this.#bounds[2 * place + 1] ?? 0
  }

  /** Returns a value as a slice of the line; `undefined` for place -1. */
  text(line: string, place: number): string | undefined {
    return place === -1 ? undefined : line.slice(this.from(place), this.to(place))
  }
}

/**
 * Values of a line by variable name: `$http_x_tenant` is a header too. It keeps only the line,
 * since many requests wait to be sorted, and few need these values.
 */
class TextFields implements FieldSource {
  readonly #line: string
  readonly #values: LineValues
  readonly #from: number
  readonly #to: number

  constructor(line: string, values: LineValues, { from, to }: RequestPlace) {
    this.#line = line
    this.#values = values
    this.#from = from
    this.#to = to
  }

  get target(): string {
    return this.#line.slice(this.#from, this.#to)
  }

  header(name: string): string | undefined {
    return this.field(`http_${name.replaceAll('-', '_')}`)
  }

  field(name: string): string | undefined {
    const place = this.#values.names.indexOf(name.replace(/^\$/, ''))
    if (place === -1) return undefined
    this.#values.find(this.#line)
    const value = present(this.#values.text(this.#line, place))
    return value && detached(value.includes('\\') ? unescaped(value) : value)
  }
}

function partsOf(pattern: string): { readonly begin: string; readonly parts: readonly Part[] } {
  const [begin = '', ...rest] = pattern.split(/\$(?:\{(\w+)\}|(\w+))/)
  const parts: Part[] = []
  for (let index = 0; index < rest.length; index += 3) {
    parts.push({ name: rest[index] ?? rest[index + 1] ?? '', end: rest[index + 2] ?? '' })
  }
  const joined = parts.findIndex(({ end }, index) => end === '' && index < parts.length - 1)
  if (joined !== -1) {
    throw new CliError(
      `the format has nothing between $${parts[joined]?.name} and $${parts[joined + 1]?.name}, so their values cannot be separated`,
    )
  }
  return { begin, parts }
}

/** The variables of a request. Some names are columns of load balancers. */
const placeNames = {
  time: ['msec', 'time_iso8601', 'time_local', 'time'],
  /** The request's time, besides the response's: load balancers log both. */
  begin: ['request_creation_time'],
  address: ['remote_addr', 'realip_remote_addr', 'remote_host'],
  request: ['request'],
  method: ['request_method'],
  target: ['request_uri', 'uri'],
  status: ['status'],
  /** In seconds. */
  duration: ['request_time'],
  durationMs: ['request_ms'],
} as const

/** The places of these variables in a line; -1 if not in the pattern. */
type Places = Readonly<Record<keyof typeof placeNames, number>>

function placesOf(names: readonly string[]): Places {
  const place = (known: readonly string[]): number => {
    return names.indexOf(known.find((name) => names.includes(name)) ?? '')
  }
  const places = {
    time: place(placeNames.time),
    begin: place(placeNames.begin),
    address: place(placeNames.address),
    request: place(placeNames.request),
    method: place(placeNames.method),
    target: place(placeNames.target),
    status: place(placeNames.status),
    duration: place(placeNames.duration),
    durationMs: place(placeNames.durationMs),
  }
  if (places.time === -1) throw missing('a time', placeNames.time)
  if (places.request === -1 && (places.method === -1 || places.target === -1)) {
    throw missing('a request', ['request', 'request_method and $request_uri'])
  }
  return places
}

function missing(what: string, names: readonly string[]): CliError {
  const listed = names.map((name) => `$${name}`).join(', ')
  return new CliError(`the format has no variable for ${what}: it needs one of ${listed}`)
}

/** Apache writes a quote in a value as `\"`, which does not end it. */
function endOf(line: string, end: string, from: number): number {
  let to = line.indexOf(end, from)
  if (!end.startsWith('"')) return to
  while (to > from && isEscaped(line, to, from)) to = line.indexOf(end, to + 1)
  return to
}

function isEscaped(line: string, at: number, from: number): boolean {
  let slashes = 0
  while (at - 1 - slashes >= from && line[at - 1 - slashes] === '\\') slashes += 1
  return slashes % 2 === 1
}

interface RequestPlace {
  readonly method: string
  readonly from: number
  readonly to: number
}

function requestOf(line: string, values: LineValues, places: Places): RequestPlace | undefined {
  if (places.request === -1) {
    const method = values.text(line, places.method) ?? ''
    const [from, to] = [values.from(places.target), values.to(places.target)]
    return isMethod(method) && from < to ? { method, from, to } : undefined
  }
  const [begin, end] = [values.from(places.request), values.to(places.request)]
  const first = line.indexOf(' ', begin)
  if (first === -1 || first >= end) return undefined
  // Most methods are known strings that need no copy.
  const method = line.startsWith('GET ', begin) ? 'GET' : line.slice(begin, first)
  const last = line.lastIndexOf(' ', end - 1)
  const to = last > first && line.startsWith('HTTP/', last + 1) ? last : end
  return isMethod(method) && first + 1 < to ? { method, from: first + 1, to } : undefined
}

/** Parses `0.052`; a list of several upstreams, as nginx writes it, is not one number. */
function msOf(text: string | undefined, unitMs: number): number | undefined {
  const duration = text === undefined || text === '' ? Number.NaN : Number(text)
  return duration >= 0 ? Math.round(duration * unitMs) : undefined
}

/** Decodes `\x22` and backslash-escaped quotes, as nginx and Apache write them. */
function unescaped(value: string): string {
  return value.replace(/\\(?:x([0-9A-Fa-f]{2})|(["\\]))/g, (_, hex: string, plain: string) =>
    hex === undefined ? plain : String.fromCharCode(Number.parseInt(hex, 16)),
  )
}
