import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import {
  fastifyTrustsAll,
  type HttpResponse,
  type RequestDecision,
  type ResponseBody,
  sendByNode,
} from '@sluice/http/adapter'
import type { HttpExchange } from './options.ts'

/** The part that the requests of Express and Fastify share. */
interface PlatformRequest {
  readonly method: string
  readonly url: string
  readonly originalUrl: string
  readonly headers: IncomingHttpHeaders
  readonly ip?: string
  readonly body?: unknown
  rateLimit?: RequestDecision | undefined
}

/** One request and its response, on whichever platform. */
export interface Platform {
  readonly request: PlatformRequest
  readonly fields: HttpResponse
  /** Node's request and response. */
  readonly raw: { readonly request: IncomingMessage; readonly response: ServerResponse }
  /** The pattern that the router matched. */
  readonly route: string | undefined
  /** The setting that trusts proxies: falsy if it is off, and `true` if it trusts every address. */
  readonly trust: unknown
  reply(status: number, body: ResponseBody): void
}

interface OfExpress {
  readonly request: PlatformRequest &
    IncomingMessage & {
      readonly app: { get(setting: string): unknown }
      readonly route?: { readonly path: unknown }
    }
  readonly response: ServerResponse
}

interface OfFastify {
  readonly request: PlatformRequest & {
    readonly raw: IncomingMessage
    readonly ips?: readonly string[]
    readonly routeOptions: { readonly url?: string }
  }
  readonly response: FastifyReply
}

/** A reply of Fastify, which keeps its fields to itself until it is sent. */
interface FastifyReply {
  readonly raw: ServerResponse
  readonly sent: boolean
  code(status: number): FastifyReply
  header(name: string, value: string): FastifyReply
  removeHeader(name: string): FastifyReply
  getHeader(name: string): ReturnType<HttpResponse['getHeader']>
  getHeaders(): Readonly<Record<string, unknown>>
  send(payload: Uint8Array): FastifyReply
}

/** Both platforms of Nest are recognised by their methods, since either may be given. */
export function platformOf(exchange: HttpExchange): Platform {
  return isOfFastify(exchange) ? fastify(exchange) : express(exchange as OfExpress)
}

function isOfFastify(exchange: HttpExchange): exchange is OfFastify {
  return 'raw' in exchange.response
}

function express({ request, response }: OfExpress): Platform {
  return {
    request,
    fields: response,
    raw: { request, response },
    get route() {
      return request.route && String(request.route.path)
    },
    get trust() {
      return request.app.get('trust proxy')
    },
    reply(status, { contentType, text }) {
      sendByNode(response, { status, headers: { 'Content-Type': contentType }, body: text })
    },
  }
}

function fastify({ request, response: reply }: OfFastify): Platform {
  return {
    request,
    fields: {
      get headersSent() {
        return reply.sent || reply.raw.headersSent
      },
      getHeaderNames: () => Object.keys(reply.getHeaders()),
      getHeader: (name) => reply.getHeader(name),
      setHeader: (name, value) => void reply.header(name, value),
      removeHeader: (name) => void reply.removeHeader(name),
    },
    raw: { request: request.raw, response: reply.raw },
    route: request.routeOptions.url,
    get trust() {
      return request.ips && (fastifyTrustsAll(request) || request.ips)
    },
    reply(status, { contentType, text }) {
      // To a text Fastify would add a charset, which problem+json does not have.
      reply.code(status).header('content-type', contentType).send(Buffer.from(text))
    },
  }
}
