import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { mount, type RateLimitHandler, type RateLimitOptions, rateLimit } from '@sluice/hono'
import { nodeRouter } from '@sluice/http/adapter'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import {
  type AppSetup,
  type Driver,
  type LimitedRequest,
  type Limits,
  type Route,
  type RunningApp,
  runningOn,
  statusOf,
} from './driver.ts'
import { streamed } from './fetch-driver.ts'

export const honoDriver: Driver = {
  name: 'Hono',
  startsLate: true,
  start,
}

async function start(setup: AppSetup): Promise<RunningApp> {
  const { limits = [], routes = [{ path: '/' }], before = {} } = setup
  const app = new Hono()
  app.onError((error, c) => {
    setup.onError?.(error)
    return c.text(error.message, 500)
  })
  app.use(async (c, next) => {
    for (const [field, value] of Object.entries(before)) {
      for (const line of [value].flat()) c.header(field, line, { append: true })
    }
    await next()
  })
  for (const [path, handler] of setup.mounts ?? []) app.use(`${path}/*`, mount(handler))
  if (setup.parsesBodies) app.use(parseBody)
  for (const options of limits) app.use(limiterOf(options, setup))
  for (const route of routes) addRoute(app, route, setup)
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false })
  return runningOn(server.listen(0, '127.0.0.1') as Server)
}

async function parseBody(c: Context, next: () => Promise<void>): Promise<void> {
  if (c.req.header('content-type')?.includes('json')) await c.req.json()
  await next()
}

function addRoute(app: Hono, route: Route, setup: AppSetup): void {
  const { method = 'GET', path, limits, answer = {}, reached, streams } = route
  const own: MiddlewareHandler[] = limits ? [limiterOf(limits, setup)] : []
  app.on(method, [path], ...own, async (c) => {
    const request = requestOf(c)
    if (streams) return new Response(streamed(() => reached?.(request)))
    await reached?.(request)
    for (const [name, value] of Object.entries(answer.fields ?? {})) c.header(name, value)
    const status = statusOf(route, request)
    return new Response(status === 304 ? null : 'hello', { status })
  })
}

/** The context as behaviours read the requests of every framework. */
function requestOf(c: Context): LimitedRequest {
  const { method, url, raw } = c.req
  const headers = Object.fromEntries(raw.headers)
  return Object.assign(c, { method, url, headers, rateLimit: c.get('rateLimit') })
}

function limiterOf({ reply, ...options }: Limits, { trustProxy }: AppSetup): MiddlewareHandler {
  const handler: RateLimitHandler = async (c, _next, decision) =>
    c.text((await reply?.(decision)) ?? '', 418)
  const addressOf: RateLimitOptions['addressOf'] = (c) => {
    const { address } = getConnInfo(c).remote
    if (address !== trustProxy) return address
    return c.req.header('x-forwarded-for')?.split(',').at(-1)?.trim() ?? address
  }
  const limit = rateLimit({
    ...options,
    router: nodeRouter,
    ...(trustProxy !== undefined && { addressOf }),
    ...(reply && { handler }),
  } as never)
  return Object.assign((c: Context, next: () => Promise<void>) => {
    requestOf(c)
    return limit(c, next)
  })
}
