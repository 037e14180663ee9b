import type { HttpRequest } from '@sluice/http'

/** All that a format reads of a line. */
export interface LineFields {
  /** In ms since 1970. */
  readonly timeMs: number
  /** Time (ms) from the request to the end of the response; `undefined` where the log has none. */
  readonly durationMs: number | undefined
  /** The peer of the connection, without its port. */
  readonly address: string | undefined
  readonly method: string
  /** 0 where the log has none. */
  readonly status: number
  /** Values by the names of the log. */
  readonly source: FieldSource
}

/** The other values of a line, looked up when they are asked for. */
export interface FieldSource {
  /** The target of the request as it was sent, with the query. */
  readonly target: string
  /** The value of a request header by its lower-case name. */
  header(name: string): string | undefined
  /** A value by the name that the log has for it. */
  field(name: string): string | undefined
}

/** One request of a log, as a guard and its key resolvers see it. */
export class LogRequest implements HttpRequest {
  readonly method: string
  readonly durationMs: number | undefined
  readonly status: number
  /** The time as the log has it: of the begin or the end. */
  readonly loggedMs: number
  /** Time of the request; later than in the log where it came too late to be put in order. */
  startMs: number
  /** The address of the client, once declared proxies are taken away. */
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

/** The path of a request target, which may be a whole URL, as proxies and load balancers log it. */
function pathOf(target: string): string {
  const scheme = target.startsWith('/') ? -1 : target.indexOf('://')
  const slash = scheme === -1 ? 0 : target.indexOf('/', scheme + 3)
  if (slash === -1) return '/'
  const query = target.indexOf('?', slash)
  if (query === -1) return slash === 0 ? target : target.slice(slash)
  return target.slice(slash, query) || '/'
}
