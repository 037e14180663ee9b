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

/** A request of Fastify at one hook of ours. */
export class FastifyContext extends FrameworkContext<FastifyRequest, RateLimitHandler> {
  readonly response: ReplyView
  scope: Scope
  readonly #reply: FastifyReply
  #routeOptions: FastifyRequest['routeOptions'] | undefined

  constructor(native: FastifyRequest, reply: FastifyReply, scope: Scope) {
    super(native)
    this.response = new ReplyView(reply)
    this.scope = scope
    this.#reply = reply
  }

  get path(): string {
    return this.native.url.split('?', 1)[0] ?? ''
  }

  /** Fastify makes these options anew each time somebody reads them. */
  get routeOptions(): FastifyRequest['routeOptions'] {
    this.#routeOptions ??= this.native.routeOptions
    return this.#routeOptions
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
    const { url, body: parsed, raw: stream } = this.native
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
      if (!(thrown instanceof Error) && !hasStatus(thrown)) reply.code(status)
      throw thrown
    }
  }
}

/** A reply of Fastify, as Sluice sees it. It keeps its fields to itself until it is sent. */
export class ReplyView implements HttpResponse {
  readonly #native: FastifyReply

  constructor(native: FastifyReply) {
    this.#native = native
  }

  get headersSent(): boolean {
    return this.#native.sent || this.#native.raw.headersSent
  }

  getHeaderNames(): readonly string[] {
    return Object.keys(this.#native.getHeaders())
  }

  getHeader(name: string): ReturnType<HttpResponse['getHeader']> {
    return this.#native.getHeader(name)
  }

  setHeader(name: string, value: string): void {
    this.#native.header(lowerCaseOf(name), value)
  }

  removeHeader(name: string): void {
    this.#native.removeHeader(name)
  }
}

const lowerCases = new Map<string, string>()

/**
 * The name under which Fastify keeps a field. Sluice has few names, and a text that is made anew
 * costs more as a key of an object than one that is there already.
 */
function lowerCaseOf(name: string): string {
  const known = lowerCases.get(name)
  if (known !== undefined) return known
  const lowerCase = name.toLowerCase()
  if (lowerCases.size < 100) lowerCases.set(name, lowerCase)
  return lowerCase
}

function hasStatus(thrown: unknown): boolean {
  return (
    typeof thrown === 'object' && thrown !== null && ('statusCode' in thrown || 'status' in thrown)
  )
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
