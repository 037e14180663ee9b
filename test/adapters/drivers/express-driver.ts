import { mount, type RateLimit, type RateLimitHandler, rateLimit } from '@sluice/express'
import type express from 'express'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import {
  type AppSetup,
  type Driver,
  type Limits,
  type Route,
  type RunningApp,
  runningOn,
  statusOf,
} from './driver.ts'

export function expressDriver(name: Driver['name'], framework: typeof express): Driver {
  return { name, start: (setup) => start(framework(), framework.json(), setup) }
}

async function start(
  app: express.Express,
  parser: RequestHandler,
  setup: AppSetup,
): Promise<RunningApp> {
  const { limits = [], routes = [{ path: '/' }], before = {}, trustProxy = false } = setup
  app.set('trust proxy', trustProxy)
  app.use((_req, res, next) => {
    for (const [field, value] of Object.entries(before)) res.setHeader(field, value)
    if (setup.startsEarly) res.write('early ')
    next()
  })
  for (const [path, handler] of setup.mounts ?? []) app.use(path, mount(handler))
  if (setup.parsesBodies) app.use(parser)
  for (const options of limits) app.use(middleware(options))
  for (const route of routes) addRoute(app, route)
  app.use((error: Error, _req: Request, res: Response, _next: NextFunction) => {
    setup.onError?.(error)
    res.status(500).send(error.message)
  })
  return runningOn(app.listen(0, '127.0.0.1'))
}

function addRoute(app: express.Express, route: Route): void {
  const { method = 'GET', path, limits, answer = {}, reached, streams } = route
  const verb = method.toLowerCase() as 'get' | 'post' | 'all'
  app[verb](path, ...(limits ? [middleware(limits)] : []), async (req, res, next) => {
    if (streams) res.write('first ')
    try {
      await reached?.(req)
    } catch (error) {
      next(error)
      return
    }
    if (res.headersSent) {
      res.end('hello')
      return
    }
    res.set(answer.fields ?? {})
    res.status(statusOf(route, req)).send('hello')
  })
}

function middleware({ reply, ...options }: Limits): RateLimit {
  const handler: RateLimitHandler = async (_req, res, _next, decision) => {
    res.status(418).send(await reply?.(decision))
  }
  return rateLimit({ ...options, ...(reply && { handler }) } as never)
}
