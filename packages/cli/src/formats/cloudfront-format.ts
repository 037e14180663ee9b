import { detached, isMethod, type LogFormat, present, statusOf, withoutPort } from './log-format.ts'
import type { FieldSource, LineFields } from './log-request.ts'
import { TimeReader } from './times.ts'

/** The columns of a file without a `#Fields` line. */
const usualColumns =
  'date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken x-forwarded-for'

/** Creates the format of CloudFront standard logs: tab-separated columns. */
export function cloudFrontFormat(): LogFormat {
  const times = new TimeReader()
  let columns = usualColumns.split(' ')

  function read(line: string): LineFields | string | undefined {
    if (line.startsWith('#')) {
      if (line.startsWith('#Fields:')) columns = line.slice('#Fields:'.length).trim().split(/\s+/)
      return undefined
    }
    const values = line.split('\t')
    if (values.length < columns.length) {
      return `it has ${values.length} columns instead of ${columns.length}`
    }
    const source = new Columns(columns, values)
    const method = source.slice('cs-method') ?? ''
    if (!isMethod(method)) return 'it has no method at cs-method'
    const timeMs = times.read(`${source.slice('date')}T${source.slice('time')}Z`)
    if (Number.isNaN(timeMs)) return 'it has no time at date and time'
    const address = source.slice('c-ip')
    const seconds = Number(source.slice('time-taken') ?? Number.NaN)
    return {
      timeMs,
      durationMs: seconds >= 0 ? Math.round(seconds * 1_000) : undefined,
      address: address && withoutPort(address),
      method,
      status: statusOf(source.slice('sc-status')),
      source,
    }
  }

  return { name: 'cloudfront', encoding: 'latin1', timeIs: 'end', read }
}

class Columns implements FieldSource {
  readonly #columns: readonly string[]
  readonly #values: readonly string[]

  constructor(columns: readonly string[], values: readonly string[]) {
    this.#columns = columns
    this.#values = values
  }

  get target(): string {
    return this.slice('cs-uri-stem') ?? '/'
  }

  header(name: string): string | undefined {
    if (name === 'x-forwarded-for') return this.field(name)
    const wanted = `cs(${name})`
    const at = this.#columns.findIndex((column) => column.toLowerCase() === wanted)
    const value = present(this.#values[at])
    return value && decoded(detached(value))
  }

  field(name: string): string | undefined {
    const value = this.slice(name)
    return value && detached(value)
  }

  /** A value that references the log in memory, for short-lived use. */
  slice(name: string): string | undefined {
    return present(this.#values[this.#columns.indexOf(name)])
  }
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    // Not every value is encoded.
    return value
  }
}
