import type {
  Hold,
  HttpResponse,
  Refusal,
  RequestContent,
  ResponseBody,
  Routing,
  Scope,
} from '@sluice/http/adapter'
import {
  FrameworkContext,
  fastifyTrustsAll,
  ProxyWatch,
  routeScope,
  settleAfter,
} from '@sluice/http/adapter'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RateLimitHandler } from './options.ts'

const proxyWatch = new ProxyWatch({
  trust: `'trustProxy'`,
  trustOne: `behind a proxy write fastify({ trustProxy: '<address of the proxy>' })`,
  trustAll: `write fastify({ trustProxy: '<addresses of all proxies, with commas between>' })`,
})

/** A request of Fastify at one hook of ours, and the reply, which keeps its fields until it is sent. */
export class FastifyContext
  extends FrameworkContext<FastifyRequest, RateLimitHandler>
  implements HttpResponse
{
  scope: Scope
  /** Fastify makes these options anew each time somebody reads them. */
  readonly routeOptions: FastifyRequest['routeOptions']
  readonly #reply: FastifyReply

  constructor(native: FastifyRequest, reply: FastifyReply, scope: Scope) {
    super(native)
    this.scope = scope
    this.routeOptions = native.routeOptions
    this.#reply = reply
  }

  get path(): string {
    return this.native.url.split('?', 1)[0] ?? ''
  }

  get route(): string | undefined {
    return this.routeOptions.url
  }

  get ip(): string | undefined {
    const forwarded = this.native.headers['x-forwarded-for']
    if (forwarded === undefined) return this.native.ip
    // They are there if and only if `trustProxy` is on, and each time worked out anew; the last one
    // is `ip`.
    const { ips } = this.native
    const address = ips ? ips.at(-1) : this.native.ip
    return proxyWatch.see(forwarded, address, ips && (fastifyTrustsAll(this.native) || ips))
  }

  get content(): RequestContent {
    const { originalUrl: url, body: parsed, raw: stream } = this.native
    return { url, parsed, stream }
  }

  settleAtEnd(hold: Hold): void {
    settleAfter(this.#reply.raw, this.native.raw.socket, hold)
  }

  send(status: number, { contentType, text }: ResponseBody): void {
    // To a text Fastify would add a charset, which problem+json does not have.
    this.#reply.code(status).type(contentType).send(Buffer.from(text))
  }

  setStatus(status: number): void {
    this.#reply.code(status)
  }

  /** Calls the user's handler. Its errors go to the error handler of Fastify. */
  async callHandler(handler: RateLimitHandler, { status, decision }: Refusal): Promise<void> {
    const reply = this.#reply
    // Not `code`, after which a redirect would keep the status.
    reply.raw.statusCode = status
    try {
      const payload = await handler(this.native, reply, decision)
      if (payload !== undefined && !reply.sent) reply.send(payload)
    } catch (thrown) {
      // A thrown value that is no Error is a body without a status of its own.
      const { status: other, statusCode = other }: { status?: unknown; statusCode?: unknown } =
        Object(thrown)
      if (statusCode === undefined && !(thrown instanceof Error)) reply.code(status)
      throw thrown
    }
  }

  get response(): HttpResponse {
    return this
  }

  get headersSent(): boolean {
    return this.#reply.sent || this.#reply.raw.headersSent
  }

  getHeaderNames(): readonly string[] {
    return Object.keys(this.#reply.getHeaders())
  }

  getHeader(name: string): ReturnType<HttpResponse['getHeader']> {
    return this.#reply.getHeader(name)
  }

  setHeader(name: string, value: string): void {
    this.#reply.header(lowerCaseOf(name), value)
  }

  removeHeader(name: string): void {
    this.#reply.removeHeader(name)
  }
}

const lowerCases = new Map<string, string>()

/**
 * The name under which Fastify keeps a field. Sluice has few names, and a text that is there already
 * is a better key of an object than a new one: it saves 0.7 µs for the fields of a request.
 */
function lowerCaseOf(name: string): string {
  const known = lowerCases.get(name)
  if (known !== undefined) return known
  const lowerCase = name.toLowerCase()
  lowerCases.set(name, lowerCase)
  return lowerCase
}

/** The route of a request as the place of its limits: one place, also for several methods. */
export function scopeOf({ method, routeOptions }: FastifyRequest): Scope {
  const { method: methods, url = '' } = routeOptions
  return routeScope(Array.isArray(methods) ? undefined : method, url)
}

/** Returns an instance's way to match paths. */
export function routingOf({ initialConfig }: FastifyInstance): Routing {
  const {
    caseSensitive = true,
    ignoreTrailingSlash = false,
    ignoreDuplicateSlashes = false,
    useSemicolonDelimiter = false,
  } = { ...initialConfig, ...initialConfig.routerOptions }
  return { caseSensitive, ignoreTrailingSlash, ignoreDuplicateSlashes, useSemicolonDelimiter }
}
