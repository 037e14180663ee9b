import {
  mount,
  type RateLimitHandler,
  type RateLimitPluginOptions,
  type RouteRateLimitOptions,
  rateLimitPlugin,
} from '@sluice/fastify'
import fastify, { type FastifyInstance } from 'fastify'
import {
  type AppSetup,
  type Driver,
  type Limits,
  type Route,
  type RunningApp,
  statusOf,
} from './driver.ts'

export const fastifyDriver: Driver = { name: 'Fastify 5', start }

async function start(setup: AppSetup): Promise<RunningApp> {
  const { limits = [], routes = [{ path: '/' }], before = {}, trustProxy = false } = setup
  const app: FastifyInstance = fastify({ forceCloseConnections: true, trustProxy })
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers(before)
    if (setup.startsEarly) reply.raw.write('early ')
  })
  app.setErrorHandler((error: Error, _request, reply) => {
    setup.onError?.(error)
    reply.code(500).type('text/plain').send(error.message)
  })
  for (const [prefix, handler] of setup.mounts ?? []) await app.register(mount(handler), { prefix })
  const hook = setup.parsesBodies ? 'preHandler' : 'onRequest'
  for (const options of limits) {
    await app.register(rateLimitPlugin, { ...pluginOptions(options), hook })
  }
  if (limits.length === 0) await app.register(rateLimitPlugin, { global: false, hook })
  for (const route of routes) addRoute(app, route)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: Number(new URL(url).port), server: app.server, close: () => app.close() }
}

function addRoute(app: FastifyInstance, route: Route): void {
  const { method = 'GET', path, limits, answer = {}, reached, streams } = route
  app.route({
    method: method === 'ALL' ? app.supportedMethods : method,
    url: path,
    config: limits ? { rateLimit: pluginOptions(limits) } : {},
    handler: async (request, reply) => {
      if (streams) reply.hijack().raw.write('first ')
      await reached?.(request)
      if (reply.raw.headersSent) {
        reply.hijack().raw.end('hello')
        return
      }
      reply.headers(answer.fields ?? {})
      const status = statusOf(route, request)
      return reply.code(status).send(status === 304 ? undefined : 'hello')
    },
  })
}

type Options = RateLimitPluginOptions & RouteRateLimitOptions

function pluginOptions({ reply, ...options }: Limits): Options {
  const handler: RateLimitHandler = async (_request, response, decision) => {
    await response.code(418).send(await reply?.(decision))
  }
  const all = { ...options, ...(reply && { handler }) }
  return all as never
}
