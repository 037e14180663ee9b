import { once } from 'node:events'
import type { IncomingHttpHeaders, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Decision, MaybePromise } from '@sluice/core'
import type { GuardFields, Handler, RequestDecision } from '@sluice/http'
import { onTestFinished } from 'vitest'

/** What the requests of all frameworks have in common. */
export interface NativeRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
}

export interface LimitedRequest extends NativeRequest {
  readonly rateLimit?: RequestDecision | undefined
}

/** The status that a route answers a request with. */
export function statusOf({ answer: { status = 200 } = {} }: Route, request: NativeRequest): number {
  return typeof status === 'function' ? status(request) : status
}

/** The path and query of a request: fetch has whole URLs. */
export function sentPath({ url }: NativeRequest): string {
  return url.replace(/^https?:\/\/[^/]*/, '')
}

/** Options that tests put together. */
export type Limits = GuardFields<NativeRequest> & {
  /** Replies with 418 and this text. */
  reply?: (decision: Decision) => MaybePromise<string>
}

export interface Route {
  /** ALL: one handler for every method. @default 'GET' */
  readonly method?: 'GET' | 'POST' | 'OPTIONS' | 'ALL'
  readonly path: string
  /** Limits of the route's own: in Fastify they replace those of the application. */
  readonly limits?: Limits
  /** What the route answers. @default 200, 'hello' */
  readonly answer?: {
    readonly status?: number | ((request: NativeRequest) => number)
    readonly fields?: Readonly<Record<string, string>>
  }
  /** Called when a request gets to the route, which answers when it resolves; what it throws is an error of the route's. */
  readonly reached?: (request: LimitedRequest) => MaybePromise<unknown>
  /** Whether the head of the answer goes out, past the framework, before `reached` is called. @default false */
  readonly streams?: boolean
}

export interface AppSetup {
  /** Limits of the whole application, in the order in which they are asked. */
  readonly limits?: readonly Limits[]
  /** @default GET / */
  readonly routes?: readonly Route[]
  /** Routers that know no framework, each with the path that it is mounted at. */
  readonly mounts?: readonly (readonly [path: string, handler: Handler])[]
  /** Whether bodies are parsed as JSON before the limits are asked. @default false */
  readonly parsesBodies?: boolean
  /** Response headers that are there before the limits are asked. */
  readonly before?: Readonly<Record<string, string | string[]>>
  /** The address of a proxy to trust. @default none */
  readonly trustProxy?: string
  /** Whether the head of every response goes out before the limits are asked. @default false */
  readonly startsEarly?: boolean
  /** Told of what reaches the error handling of the framework, which replies 500 with the message. */
  readonly onError?: (error: Error) => void
}

export interface RunningApp {
  readonly port: number
  readonly server: Server
  close(): Promise<void>
}

/** An application on a server that has been told to listen. */
export async function runningOn(server: Server): Promise<RunningApp> {
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    server,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** The port of a server that is closed with its test. */
export async function portOf(server: Server): Promise<number> {
  const { port, close } = await runningOn(server)
  onTestFinished(close)
  return port
}

/** How the behaviours are tried on a framework. */
export interface Driver {
  readonly name: string
  /** Whether the framework trusts a number of proxies, and not their addresses, so that any peer counts as one. @default false */
  readonly trustsAnyPeer?: boolean
  /** Whether a refusal is a response of its own, on which nobody has put fields before. @default false */
  readonly refusesAlone?: boolean
  /** Whether a response cannot begin before its handler returns it. @default false */
  readonly startsLate?: boolean
  /** Whether what stands between Node and the framework does not tell that a pipelined request lost its connection. @default false */
  readonly missesPipelined?: boolean
  start(setup: AppSetup): Promise<RunningApp>
}
