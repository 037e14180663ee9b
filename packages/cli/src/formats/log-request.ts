import type { HttpRequest } from '@sluice/http'

/** Fields that a format reads from a line. */
export interface LineFields {
  /** In ms since 1970. */
  readonly timeMs: number
  /** Time (ms) from the request to the end of the response; `undefined` if not in the log. */
  readonly durationMs: number | undefined
  /** The connection's peer, without its port. */
  readonly address: string | undefined
  readonly method: string
  /** 0 if not in the log. */
  readonly status: number
  /** Values by their names in the log. */
  readonly source: FieldSource
}

/** The other values of a line, looked up on demand. */
export interface FieldSource {
  /** The request target as it was sent, with the query. */
  readonly target: string
  /** The value of a request header by its lower-case name. */
  header(name: string): string | undefined
  /** A value by its name in the log. */
  field(name: string): string | undefined
}

/** One request of a log, as a guard and its key resolvers see it. */
export class LogRequest implements HttpRequest {
  readonly method: string
  readonly durationMs: number | undefined
  readonly status: number
  /** The time in the log: of the start or the end. */
  readonly loggedMs: number
  /** Time of the request; later than in the log if it came too late to be sorted. */
  startMs: number
  /** The client's address, after removing declared proxies. */
  ip: string | undefined
  /** The pattern that the path matches. */
  route: string | undefined = undefined
  /** Set by the guard. */
  rule?: string
  readonly #source: FieldSource

  constructor(fields: LineFields, startMs: number) {
    this.method = fields.method
    this.durationMs = fields.durationMs
    this.status = fields.status
    this.loggedMs = fields.timeMs
    this.startMs = startMs
    this.ip = fields.address
    this.#source = fields.source
  }

  get path(): string {
    return pathOf(this.#source.target)
  }

  header(name: string): string | undefined {
    return this.#source.header(name)
  }

  field(name: string): string | undefined {
    return this.#source.field(name)
  }
}

/** The path of a request target, which may be a full URL in logs of proxies and load balancers. */
function pathOf(target: string): string {
  const scheme = target.startsWith('/') ? -1 : target.indexOf('://')
  const slash = scheme === -1 ? 0 : target.indexOf('/', scheme + 3)
  if (slash === -1) return '/'
  const query = target.indexOf('?', slash)
  if (query === -1) return slash === 0 ? target : target.slice(slash)
  return target.slice(slash, query) || '/'
}
