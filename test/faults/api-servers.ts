import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FailureMode } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { rateLimitPlugin } from '@sluice/fastify'
import type { GuardOptions } from '@sluice/http'
import express from 'express'
import fastify from 'fastify'
import type { Framework } from './api-messages.ts'

/** The limits of one route, which is named after the mode. */
export interface LimitedRoute {
  readonly mode: FailureMode
  readonly limits: GuardOptions<unknown, never>
}

/** An API that listens: a limited route for each mode, and `/health`, which is not limited. */
export interface ApiServer {
  readonly port: number
  /** Ends all connections, and resolves when the server is closed. */
  close(): Promise<void>
}

/** @param watch is given the server before any request comes */
export function startApi(
  framework: Framework,
  routes: readonly LimitedRoute[],
  watch: (server: Server) => void,
): Promise<ApiServer> {
  return framework === 'express' ? startExpress(routes, watch) : startFastify(routes, watch)
}

async function startExpress(
  routes: readonly LimitedRoute[],
  watch: (server: Server) => void,
): Promise<ApiServer> {
  const app = express()
  app.get('/health', (_req, res) => void res.send('well'))
  for (const { mode, limits } of routes) {
    app.get(`/${mode}`, rateLimit(limits), (_req, res) => void res.send('passed'))
  }
  const server = app.listen(0, '127.0.0.1')
  // As Fastify's: a connection that is closed just as a client uses it again would look like a request without an answer.
  server.keepAliveTimeout = 72_000
  watch(server)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function startFastify(
  routes: readonly LimitedRoute[],
  watch: (server: Server) => void,
): Promise<ApiServer> {
  const app = fastify({ forceCloseConnections: true })
  app.get('/health', async () => 'well')
  for (const { mode, limits } of routes) {
    app.register(async (scope) => {
      await scope.register(rateLimitPlugin, limits)
      scope.get(`/${mode}`, async () => 'passed')
    })
  }
  watch(app.server)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: Number(new URL(url).port), close: () => app.close() }
}
