import { isMethod, type LogFormat, present, statusOf, withoutPort } from './log-format.ts'
import type { FieldSource, LineFields } from './log-request.ts'
import { TimeReader } from './times.ts'

/** Duration units, in ms. */
export const durationUnits: Readonly<Record<string, number>> = { s: 1e3, ms: 1, us: 1e-3, ns: 1e-6 }

/** Dotted field paths; the first path found counts. */
type FieldPath = string | readonly string[]

/** The fields of a JSON line that describe a request. */
export interface FieldMap {
  readonly time: FieldPath
  readonly ip: FieldPath
  readonly method: FieldPath
  readonly path: FieldPath
  readonly status?: FieldPath
  readonly duration?: FieldPath
  /** @default 'ms' */
  readonly durationUnit?: string
  /** An object of request headers. @default none */
  readonly headers?: string
  /** Prefix of header names, such as Traefik's `request_`. @default none */
  readonly headerPrefix?: string
  /** @default 'end' */
  readonly timeIs?: 'start' | 'end'
}

type JsonObject = Readonly<Record<string, unknown>>

export function jsonFormat(name: string, map: FieldMap): LogFormat {
  const times = new TimeReader()
  const { durationUnit = 'ms', timeIs = 'end' } = map
  const unitMs = durationUnits[durationUnit] ?? 1

  function read(line: string): LineFields | string | undefined {
    const value = parsed(line)
    if (value === undefined) return 'it is not a JSON object'
    const method = textAt(value, map.method)
    const target = textAt(value, map.path)
    // Application logs have other lines between those of requests.
    if (method === undefined && target === undefined) return undefined
    if (method === undefined || !isMethod(method))
      return `it has no method at ${listed(map.method)}`
    if (target === undefined) return `it has no path at ${listed(map.path)}`
    const timeMs = times.read(textAt(value, map.time) ?? '')
    if (Number.isNaN(timeMs)) return `it has no time at ${listed(map.time)}`
    const duration = map.duration && Number(textAt(value, map.duration) ?? Number.NaN)
    const address = textAt(value, map.ip)
    return {
      timeMs,
      durationMs: Number(duration) >= 0 ? Math.round(Number(duration) * unitMs) : undefined,
      address: address && withoutPort(address),
      method,
      status: statusOf(map.status && textAt(value, map.status)),
      source: new JsonFields(target, value, map),
    }
  }

  return { name, encoding: 'utf8', timeIs, read }
}

class JsonFields implements FieldSource {
  readonly target: string
  readonly #value: JsonObject
  readonly #map: FieldMap
  #headers: ReadonlyMap<string, string> | undefined

  constructor(target: string, value: JsonObject, map: FieldMap) {
    this.target = target
    this.#value = value
    this.#map = map
  }

  header(name: string): string | undefined {
    this.#headers ??= headersOf(this.#value, this.#map)
    return this.#headers.get(name)
  }

  field(name: string): string | undefined {
    return textAt(this.#value, name)
  }
}

function headersOf(value: JsonObject, map: FieldMap): ReadonlyMap<string, string> {
  const { headers, headerPrefix = '' } = map
  const found = headers === undefined ? value : valueAt(value, headers)
  if (!isObject(found)) return new Map()
  const named = Object.entries(found).flatMap(([name, header]) => {
    const text = textOf(Array.isArray(header) ? header.join(', ') : header)
    if (text === undefined || !name.startsWith(headerPrefix)) return []
    const short = name.slice(headerPrefix.length).toLowerCase()
    return [[headers === undefined ? short.replaceAll('_', '-') : short, text] as const]
  })
  return new Map(named)
}

function textAt(value: JsonObject, paths: FieldPath): string | undefined {
  if (typeof paths === 'string') return textOf(valueAt(value, paths))
  for (const path of paths) {
    const text = textOf(valueAt(value, path))
    if (text !== undefined) return text
  }
  return undefined
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return present(value)
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

function valueAt(value: JsonObject, path: string): unknown {
  // Names may contain dots.
  if (Object.hasOwn(value, path)) return value[path]
  return path
    .split('.')
    .reduce<unknown>(
      (found, name) => (isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined),
      value,
    )
}

function parsed(line: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch {
    // The line counts as unreadable.
    return undefined
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function listed(paths: FieldPath): string {
  return typeof paths === 'string' ? paths : paths.join(' or ')
}
