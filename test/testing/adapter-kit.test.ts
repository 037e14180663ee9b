import { createServer, type ServerResponse } from 'node:http'
import type { Hold } from '@sluice/http/adapter'
import { type AdapterSetup, adapterConformance, type ServedApp } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { NodeContext, rateLimit } from '../../examples/node-http-adapter/rate-limit.ts'
import { runningOn } from '../adapters/drivers/driver.ts'
import { runKit } from './run-kit.ts'

interface Flaws {
  readonly Context?: typeof NodeContext
  /** Changes a response that goes on to the handler. */
  readonly pass?: (response: ServerResponse) => void
  readonly ignoresRefusals?: boolean
  readonly swallowsErrors?: boolean
  readonly limitsReadsOnly?: boolean
}

/** Serves by the example of an adapter, which has no flaws of its own. */
function serveWith(flaws: Flaws = {}) {
  const { Context, pass, ignoresRefusals, swallowsErrors, limitsReadsOnly } = flaws
  return async ({ limits, handle, onError }: AdapterSetup): Promise<ServedApp> => {
    const limiters = limits.map((options) => rateLimit(options, Context))
    const server = createServer(async (request, response) => {
      const reply = (status: number, text?: string): void => {
        if (response.headersSent) return
        response.statusCode = status
        response.end(text)
      }
      try {
        for (const limit of limitsReadsOnly && request.method === 'POST' ? [] : limiters) {
          try {
            if (!(await limit(request, response)) && !ignoresRefusals) return
          } catch (error) {
            if (!swallowsErrors) throw error
          }
        }
        pass?.(response)
        if (request.url !== '/' || !/^(GET|HEAD)$/.test(request.method ?? '')) return reply(404)
        const status = await handle()
        reply(status, status === 304 ? undefined : 'hello')
      } catch (error) {
        onError(error)
        reply(500, (error as Error).message)
      }
    })
    const { port, close } = await runningOn(server.listen(0, '127.0.0.1'))
    return { url: `http://127.0.0.1:${port}`, close }
  }
}

adapterConformance({ describe, it, serve: serveWith(), waitMs: 15_000 })

type Body = Parameters<NodeContext['send']>[1]

/** Waits for the end of the connection, which other requests may share. */
class SettlesWithConnection extends NodeContext {
  override settleAtEnd(hold: Hold) {
    this.native.socket.once('close', () => {
      if (this.response.writableEnded) hold.finish(this.response.statusCode)
      else hold.abort()
    })
  }
}

/** Reads parts of a request as others. */
const reading = (own: (context: NodeContext) => object) =>
  class extends NodeContext {
    constructor(...exchange: ConstructorParameters<typeof NodeContext>) {
      super(...exchange)
      for (const [name, value] of Object.entries(own(this))) {
        Object.defineProperty(this, name, { value })
      }
    }
  }

const flawed: Readonly<Record<string, readonly [Flaws | typeof NodeContext, message: RegExp]>> = {
  'adds a charset to the type of a problem': [
    class extends NodeContext {
      override send(status: number, { contentType, text }: Body) {
        super.send(status, { contentType: `${contentType}; charset=utf-8`, text })
      }
    },
    /Content-Type: expected 'application\/problem\+json', but got 'application\/problem\+json; charset/,
  ],
  'refuses with one status only': [
    class extends NodeContext {
      override send(_status: number, body: Body) {
        super.send(429, body)
      }
    },
    /the status: expected 503, but got 429/,
  ],
  'answers HEAD without a length': [
    class extends NodeContext {
      override send(status: number, body: Body) {
        if (this.method !== 'HEAD') return super.send(status, body)
        this.response.statusCode = status
        this.response.end()
      }
    },
    /Content-Length: expected '143', but got undefined/,
  ],
  'believes X-Forwarded-For': [
    reading((context) => ({ ip: context.header('x-forwarded-for') ?? context.ip })),
    /x-forwarded-for makes no new client: expected \[ 429 \], but got \[ 200 \]/,
  ],
  'takes all clients for one': [
    reading(() => ({ ip: '127.0.0.1' })),
    /another address: expected \[ 200, 429 \], but got \[ 429, 429 \]/,
  ],
  'reads no headers': [
    reading(() => ({ header: () => undefined })),
    /another client: expected \[ 200, 429 \]/,
  ],
  'takes every request for a GET': [
    reading(() => ({ method: 'GET' })),
    /the fields of a preflight that passes: expected \{\}, but got/,
  ],
  'settles nothing': [
    reading(() => ({ settleAtEnd: () => undefined })),
    /the lease ends when the client has left/,
  ],
  'ends leases when the connection closes': [
    SettlesWithConnection,
    /the first lease ends while the connection carries the next request/,
  ],
  'gives back units when the connection closes': [
    SettlesWithConnection,
    /units come back while the connection carries the next request/,
  ],
  'takes each path for a route': [
    reading(({ path }) => ({ route: path })),
    /another path without a route: expected \[ 429 \], but got \[ 404 \]/,
  ],
  'sees one path only': [
    reading(() => ({ path: '/' })),
    /its rule, with another query: expected \[ 429 \], but got \[ 404 \]/,
  ],
  'takes some spellings of a path for one': [
    reading(({ path }) => ({ path: path.toLowerCase() })),
    /\/nowhere\/, if \/NOWHERE is answered 429: expected \[ 429 \], but got \[ 404 \]/,
  ],
  'limits no POST': [
    { limitsReadsOnly: true },
    /a POST to an unknown route: expected \[ 404, 429, 429 \]/,
  ],
  'drops the fields of requests that pass': [
    {
      pass(response) {
        for (const name of response.getHeaderNames()) response.removeHeader(name)
      },
    },
    /the header fields: expected \{ 'ratelimit-policy': .* but got \{\}/,
  ],
  'runs the handler for a refused request': [
    { ignoresRefusals: true },
    /requests that reached the handler: expected 5, but got 6/,
  ],
  'lets a request pass when a function of the options fails': [
    { swallowsErrors: true },
    /the response of the error handler: expected \[ 500, 'a mistake' \], but got \[ 200, 'hello' \]/,
  ],
}

describe('the kit for adapters', () => {
  it.each(Object.entries(flawed))('catches an adapter that %s', async (_, [flaw, message]) => {
    const serve = serveWith(typeof flaw === 'function' ? { Context: flaw } : flaw)
    const { messages } = await runKit(
      // Only what never comes is waited for.
      (runner) => adapterConformance({ ...runner, serve, waitMs: 300 }),
      message,
    )
    expect(messages).toContainEqual(expect.stringMatching(message))
  })

  it('requires a test runner, and names unknown options', () => {
    const serve = serveWith()
    expect(() => adapterConformance({ serve })).toThrow(/adapterConformance: describe must be/)
    const options = { describe, it, serve, server: serve }
    expect(() => adapterConformance(options)).toThrow(/there is no option 'server'.*'serve'/)
  })
})
