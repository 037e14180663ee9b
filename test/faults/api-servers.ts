import type { IncomingMessage, Server } from 'node:http'
import type { FailureMode } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { rateLimitPlugin } from '@sluice/fastify'
import type { GuardOptions } from '@sluice/http'
import express, { type RequestHandler } from 'express'
import fastify from 'fastify'
import { serve } from '../support/serve.ts'
import type { Framework } from './api-messages.ts'

export interface LimitedRoute {
  readonly mode: FailureMode
  readonly limits: GuardOptions<unknown, never>
}

/** Sees all requests: as they arrive, as they are given to a limiter, and as it lets them pass. */
export interface ApiWatch {
  requestsOf(server: Server): void
  asks(request: IncomingMessage): void
  passes(request: IncomingMessage): void
}

export function startApi(framework: Framework, routes: readonly LimitedRoute[], watch: ApiWatch) {
  return framework === 'express' ? startExpress(routes, watch) : startFastify(routes, watch)
}

async function startExpress(routes: readonly LimitedRoute[], watch: ApiWatch) {
  const app = express()
  for (const { mode, limits } of routes) {
    const ask: RequestHandler = (req, _res, next) => {
      watch.asks(req)
      next()
    }
    app.get(`/${mode}`, ask, rateLimit(limits), (req, res) => {
      watch.passes(req)
      res.send('passed')
    })
  }
  const { server, port, close } = await serve(app)
  // As Fastify's: a connection that is closed just as a client uses it again would look like a request without an answer.
  server.keepAliveTimeout = 72_000
  watch.requestsOf(server)
  return { port, close }
}

async function startFastify(routes: readonly LimitedRoute[], watch: ApiWatch) {
  const app = fastify({ forceCloseConnections: true })
  for (const { mode, limits } of routes) {
    app.register(async (scope) => {
      scope.addHook('onRequest', async (request) => watch.asks(request.raw))
      await scope.register(rateLimitPlugin, limits)
      scope.get(`/${mode}`, async (request) => {
        watch.passes(request.raw)
        return 'passed'
      })
    })
  }
  watch.requestsOf(app.server)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: Number(new URL(url).port), close: () => app.close() }
}
