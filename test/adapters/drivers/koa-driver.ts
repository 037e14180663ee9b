import { json } from 'node:stream/consumers'
import Router from '@koa/router'
import { mount, type RateLimit, type RateLimitHandler, rateLimit } from '@sluice/koa'
import type Koa from 'koa'
import type { Context, Middleware } from 'koa'
import {
  type AppSetup,
  type Driver,
  type Limits,
  type Route,
  type RunningApp,
  runningOn,
  statusOf,
} from './driver.ts'

export function koaDriver(name: Driver['name'], framework: typeof Koa): Driver {
  return { name, trustsAnyPeer: true, start: (setup) => start(new framework(), setup) }
}

async function start(app: Koa, setup: AppSetup): Promise<RunningApp> {
  const { limits = [], routes = [{ path: '/' }], before = {} } = setup
  // Koa trusts a number of proxies, and not their addresses.
  app.proxy = setup.trustProxy !== undefined
  app.maxIpsCount = 1
  app.silent = true
  app.use(async (ctx, next) => {
    try {
      for (const [field, value] of Object.entries(before)) ctx.set(field, value)
      if (setup.startsEarly) begin(ctx, 'early ')
      await next()
    } catch (error) {
      setup.onError?.(error as Error)
      ctx.status = 500
      ctx.body = (error as Error).message
    }
    if (ctx.res.headersSent && !ctx.res.writableEnded) ctx.res.end()
  })
  for (const [path, handler] of setup.mounts ?? []) app.use(mount(handler, path))
  if (setup.parsesBodies) app.use(parseBody)
  for (const options of limits) app.use(middleware(options))
  const router = new Router({ strict: false })
  for (const route of routes) addRoute(router, route)
  app.use(router.routes())
  return runningOn(app.listen(0, '127.0.0.1'))
}

/** Sends the head past Koa, whose status is 404 until somebody sets it. */
function begin(ctx: Context, text: string): void {
  ctx.res.statusCode = 200
  ctx.res.write(text)
}

async function parseBody(ctx: Context, next: () => Promise<unknown>): Promise<void> {
  if (ctx.is('json')) Object.assign(ctx.request, { body: await json(ctx.req) })
  await next()
}

function addRoute(router: Router, route: Route): void {
  const { method = 'GET', path, limits, answer = {}, reached, streams } = route
  const verb = method.toLowerCase() as 'get' | 'post' | 'all'
  const own: Middleware[] = limits ? [middleware(limits) as Middleware] : []
  router[verb](path.replace(/\*$/, '{*rest}'), ...(own as never[]), async (ctx: Context) => {
    if (streams) begin(ctx, 'first ')
    await reached?.(ctx as never)
    if (ctx.res.headersSent) {
      ctx.res.end('hello')
      return
    }
    ctx.set(answer.fields ?? {})
    ctx.status = statusOf(route, ctx)
    if (ctx.status !== 304) ctx.body = 'hello'
  })
}

function middleware({ reply, ...options }: Limits): RateLimit {
  const handler: RateLimitHandler = async (ctx, _next, decision) => {
    ctx.status = 418
    ctx.body = await reply?.(decision)
  }
  return rateLimit({ ...options, ...(reply && { handler }) } as never)
}
