import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { MaybePromise } from '@sluice/core'
import type { GuardOptions, LivePolicies } from '@sluice/http'
import type { FakeClock } from '../../fake-clock.ts'
import { until } from '../assertions.ts'

/** Options that every adapter accepts. Their functions do not read the framework's request. */
export type AdapterLimits = Exclude<GuardOptions<object>, { policies: LivePolicies }>

/** The application for one test. Its handler serves `GET /` and HEAD; everything else is 404. */
export interface AdapterSetup {
  /** Limits of the whole application, in the order in which they are checked. */
  readonly limits: readonly AdapterLimits[]
  /**
   * Called when a request reaches the handler. The handler answers with this status and the text
   * `hello`. An exception here is a handler error.
   */
  handle(): MaybePromise<number>
  /**
   * The framework's error handling must call this, and then answer 500 with the error message as
   * text.
   */
  onError(error: unknown): void
}

/** An application that listens on 127.0.0.1, without a proxy in front. */
export interface ServedApp {
  /** `http://127.0.0.1:` and the port. */
  readonly url: string
  close(): MaybePromise<unknown>
}

/** Starts an application with the adapter under test. */
export type Serve = (setup: AdapterSetup) => MaybePromise<ServedApp>

export interface Question {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The client's address. @default '127.0.0.1' */
  readonly from?: string
  /** Text to send as JSON. @default none */
  readonly body?: string
  /** Connections to use. @default a new one, which ends with the response */
  readonly agent?: Agent
  /** If aborted, the client disconnects. */
  readonly signal?: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** One test of an adapter. */
export type AdapterCase = (bench: AdapterBench) => Promise<void>

/** Tests by name. */
export type AdapterCases = Readonly<Record<string, AdapterCase>>

/** The applications of one test, and their clock. */
export class AdapterBench {
  readonly clock: FakeClock
  /** Errors that reached the error handling of the framework. */
  readonly errors: unknown[] = []
  /** Number of requests that reached the handler. */
  reached = 0
  readonly #serve: Serve
  readonly #waitMs: number
  readonly #apps: ServedApp[] = []
  readonly #agents: Agent[] = []

  constructor(serve: Serve, { clock, waitMs }: { clock: FakeClock; waitMs: number }) {
    this.#serve = serve
    this.clock = clock
    this.#waitMs = waitMs
  }

  /** Waits, in real time, until a condition holds. */
  until(promise: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    return until(promise, holds, this.#waitMs)
  }

  /** Starts an application whose handler answers 200. */
  limited(...limits: readonly AdapterLimits[]): Promise<Asking> {
    return this.start(limits, () => 200)
  }

  async start(
    limits: readonly AdapterLimits[],
    handle: () => MaybePromise<number>,
  ): Promise<Asking> {
    const app = await this.#serve({
      limits,
      handle: () => {
        this.reached += 1
        return handle()
      },
      onError: (error) => this.errors.push(error),
    })
    this.#apps.push(app)
    return new Asking(app.url)
  }

  /** One connection, which stays open across requests until the test ends. */
  connection(): Agent {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    this.#agents.push(agent)
    return agent
  }

  async end(): Promise<void> {
    for (const agent of this.#agents.splice(0)) agent.destroy()
    await Promise.all(this.#apps.splice(0).map((app) => app.close()))
  }
}

/** The clients of one application. */
export class Asking {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  async ask(question: Question = {}): Promise<Answer> {
    const { method = 'GET', path = '/', body: sent, agent = false, from, signal } = question
    const type = sent !== undefined && { 'content-type': 'application/json' }
    const options = {
      ...{ method, path, agent, headers: { ...type, ...question.headers } },
      ...(from !== undefined && { localAddress: from }),
      ...(signal && { signal }),
    }
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request(this.#url, options, resolve).once('error', reject).end(sent)
    })
    const body = await text(response)
    return { status: response.statusCode ?? 0, headers: response.headers, body }
  }

  /** Returns the statuses of several consecutive requests. */
  async statuses(count: number, question?: Question): Promise<number[]> {
    const statuses: number[] = []
    for (let i = 0; i < count; i += 1) statuses.push((await this.ask(question)).status)
    return statuses
  }
}

/** The header fields that a limiter may set. */
export function limitFields({ headers }: Answer): IncomingHttpHeaders {
  const isOfLimits = (name: string): boolean => /^(x-)?ratelimit|^retry-after$/.test(name)
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isOfLimits(name)))
}
