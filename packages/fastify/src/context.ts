import type { HttpResponse, Refusal, RequestContent, ResponseBody } from '@sluice/http/adapter'
import { FrameworkContext, fastifyTrustsAll, ProxyWatch, type Scope } from '@sluice/http/adapter'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RateLimitHandler } from './options.ts'

const proxyWatch = new ProxyWatch({
  trust: `'trustProxy'`,
  trustOne: `behind a proxy write fastify({ trustProxy: '<address of the proxy>' })`,
  trustAll: `write fastify({ trustProxy: '<addresses of all proxies, with commas between>' })`,
})

/**
 * The names under which Fastify keeps fields: Sluice has few. A text that is there already is a
 * better key of an object than a new one: it saves 0.7 µs for the five fields of a request.
 */
const lowerCases: Record<string, string> = Object.create(null)

/** A request of Fastify at one hook of ours, and its reply, which keeps the fields for the head. */
export class FastifyContext extends FrameworkContext<FastifyRequest, RateLimitHandler> {
  /** Fastify makes these options anew each time somebody reads them. */
  readonly routeOptions: FastifyRequest['routeOptions']
  readonly #reply: FastifyReply

  constructor(native: FastifyRequest, reply: FastifyReply, scope: Scope) {
    super(native, scope)
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
    // Fastify works them out anew each time, and only with `trustProxy`. The last one is `ip`.
    const { ips } = this.native
    const address = ips?.at(-1) ?? this.native.ip
    return proxyWatch.see(forwarded, address, ips && (fastifyTrustsAll(this.native) || ips))
  }

  get content(): RequestContent {
    const { originalUrl: url, body: parsed, raw: stream } = this.native
    return { url, parsed, stream }
  }

  send(status: number, { contentType, text }: ResponseBody): void {
    // To a text Fastify would add a charset, which problem+json does not have.
    this.#reply.code(status).type(contentType).send(Buffer.from(text))
  }

  /** Calls the user's handler. Its errors go to the error handler of Fastify. */
  async callHandler(handler: RateLimitHandler, { status, decision }: Refusal): Promise<void> {
    const reply = this.#reply
    try {
      const payload = await handler(this.native, reply, decision)
      if (payload !== undefined && !reply.sent) reply.send(payload)
    } catch (thrown) {
      // A thrown value that is no Error is a body, and mostly has no status of its own.
      const hasStatus = ['statusCode', 'status'].some((name) => Reflect.get(Object(thrown), name))
      if (!hasStatus && !(thrown instanceof Error)) reply.code(status)
      throw thrown
    }
  }

  get response(): HttpResponse {
    return this
  }

  get raw(): FastifyReply['raw'] {
    return this.#reply.raw
  }

  get headersSent(): boolean {
    return this.#reply.sent || this.raw.headersSent
  }

  getHeaderNames(): readonly string[] {
    return Object.keys(this.#reply.getHeaders())
  }

  getHeader(name: string): ReturnType<HttpResponse['getHeader']> {
    return this.#reply.getHeader(name)
  }

  setHeader(name: string, value: string): void {
    lowerCases[name] ??= name.toLowerCase()
    this.#reply.header(lowerCases[name], value)
  }

  removeHeader(name: string): void {
    this.#reply.removeHeader(name)
  }
}
