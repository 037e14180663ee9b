import { CliError } from '../../exit-codes.ts'
import type { FieldSource, LineFields } from '../log-request.ts'
import { isMethod, type LogFormat, present, statusOf, withoutPort } from './log-format.ts'
import { TimeReader } from './times.ts'

/** A variable of a pattern, and the text that ends its value. */
interface Part {
  readonly name: string
  readonly end: string
}

/** The places of variables that a request is made of; -1 where the pattern has none. */
interface Places {
  readonly time: number
  /** The request's own time, beside that of the response: load balancers log both. */
  readonly begin: number
  readonly address: number
  readonly request: number
  readonly method: number
  readonly target: number
  readonly status: number
  readonly duration: number
}

interface TextOptions {
  readonly name: string
  readonly timeIs?: 'start' | 'end'
}

/**
 * Makes a format of the pattern of an nginx `log_format`: text with `$variables`.
 * @throws CliError when the values of a line cannot be told apart, or no request can be made of it
 */
export function textFormat(pattern: string, { name, timeIs = 'end' }: TextOptions): LogFormat {
  const { begin, parts } = partsOf(pattern)
  const names = parts.map((part) => part.name)
  const places = placesOf(names)
  const times = new TimeReader()

  function read(line: string): LineFields | string {
    const values = valuesOf(line, begin, parts)
    if (typeof values === 'string') return values
    const [method, target] = requestOf(values, places)
    if (!isMethod(method) || target === '') return 'it has no HTTP request line'
    const timeMs = times.read(values[places.time] ?? '')
    if (Number.isNaN(timeMs)) return `it has no time at $${names[places.time]}`
    const beginMs = places.begin === -1 ? timeMs : times.read(values[places.begin] ?? '')
    if (Number.isNaN(beginMs)) return `it has no time at $${names[places.begin]}`
    const address = present(values[places.address])
    if (address?.includes(' ')) return 'it has no address where the format has one'
    return {
      timeMs: beginMs,
      durationMs:
        places.begin === -1 ? secondsOf(values[places.duration]) : Math.max(0, timeMs - beginMs),
      address: address && withoutPort(address),
      method,
      target,
      status: statusOf(values[places.status]),
      source: new TextFields(names, values),
    }
  }

  return { name, encoding: 'latin1', timeIs, read }
}

/** Values of a line by the names of variables: `$http_x_tenant` is a header too. */
class TextFields implements FieldSource {
  readonly #names: readonly string[]
  readonly #values: readonly string[]

  constructor(names: readonly string[], values: readonly string[]) {
    this.#names = names
    this.#values = values
  }

  header(name: string): string | undefined {
    return this.field(`http_${name.replaceAll('-', '_')}`)
  }

  field(name: string): string | undefined {
    const value = present(this.#values[this.#names.indexOf(name.replace(/^\$/, ''))])
    return value?.includes('\\') ? unescaped(value) : value
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
      `the format has nothing between $${parts[joined]?.name} and $${parts[joined + 1]?.name}, so their values cannot be told apart`,
    )
  }
  return { begin, parts }
}

/** Other names stand for the columns of load balancers. */
const placeNames = {
  time: ['msec', 'time_iso8601', 'time_local', 'time'],
  begin: ['request_creation_time'],
  address: ['remote_addr', 'realip_remote_addr', 'remote_host'],
  request: ['request'],
  method: ['request_method'],
  target: ['request_uri', 'uri'],
  status: ['status'],
  duration: ['request_time'],
} as const

function placesOf(names: readonly string[]): Places {
  const place = (known: readonly string[]): number => {
    const found = known.find((name) => names.includes(name))
    return found === undefined ? -1 : names.indexOf(found)
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

/** The values of a line in the order of the variables, or why there are none. */
function valuesOf(line: string, begin: string, parts: readonly Part[]): string[] | string {
  if (!line.startsWith(begin)) return `it does not begin with '${begin}'`
  const values: string[] = []
  let from = begin.length
  for (const { name, end } of parts) {
    const to = end === '' ? line.length : endOf(line, end, from)
    if (to === -1) return `'${end}' does not follow $${name}`
    values.push(line.slice(from, to))
    from = to + end.length
  }
  return from === line.length ? values : 'it goes on after the last value'
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

function requestOf(values: readonly string[], places: Places): [method: string, target: string] {
  if (places.request === -1) return [values[places.method] ?? '', values[places.target] ?? '']
  const request = values[places.request] ?? ''
  const first = request.indexOf(' ')
  const last = request.lastIndexOf(' ')
  const hasVersion = last > first && request.startsWith('HTTP/', last + 1)
  return [request.slice(0, first), request.slice(first + 1, hasVersion ? last : undefined)]
}

/** `0.052`; of several upstreams, which nginx lists, there is no one number. */
function secondsOf(text: string | undefined): number | undefined {
  const seconds = text === undefined || text === '' ? Number.NaN : Number(text)
  return seconds >= 0 ? Math.round(seconds * 1_000) : undefined
}

/** nginx and Apache write characters as `\x22`, and a quote after a backslash. */
function unescaped(value: string): string {
  return value.replace(/\\(?:x([0-9A-Fa-f]{2})|(["\\]))/g, (_, hex: string, plain: string) =>
    hex === undefined ? plain : String.fromCharCode(Number.parseInt(hex, 16)),
  )
}
