import 'reflect-metadata'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  All,
  type ArgumentsHost,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  HttpException,
  type INestApplication,
  Module,
  Options,
  Post,
  type Provider,
  Req,
  Res,
} from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { mount as mountOnExpress } from '@sluice/express'
import { mount as mountOnFastify } from '@sluice/fastify'
import {
  RateLimit,
  RateLimitException,
  RateLimitFilter,
  RateLimitGuard,
  type RateLimitHandler,
  RateLimitModule,
} from '@sluice/nest'
import type { Response } from 'express'
import type { FastifyReply } from 'fastify'
import {
  type AppSetup,
  type Driver,
  type LimitedRequest,
  type Limits,
  type Route,
  type RunningApp,
  statusOf,
} from './driver.ts'

/** Nest on one of its platforms, with refusals as `RateLimitFilter` sends them. */
export function nestDriver(name: Driver['name'], platform: Platform): Driver {
  return { name, start: (setup) => start(platform, setup) }
}

/** What a test has to know of a platform of Nest. */
interface Platform {
  create(module: object, setup: AppSetup): Promise<INestApplication>
  /** Node's response, and what sends a response of the platform. */
  raw(response: never): ServerResponse
  send(response: never, status: number, text: string | undefined): void
  wildcard: string
}

const settings = { logger: ['fatal' as const], forceCloseConnections: true, abortOnError: false }

export const onExpress: Platform = {
  wildcard: '{*rest}',
  async create(module, setup) {
    const { before = {}, startsEarly, trustProxy = false, mounts = [] } = setup
    const options = { ...settings, bodyParser: setup.parsesBodies ?? false }
    const adapter = new ExpressAdapter()
    const app: NestExpressApplication = await NestFactory.create(module as never, adapter, options)
    app.set('trust proxy', trustProxy)
    app.use((_request: IncomingMessage, response: ServerResponse, next: () => void) => {
      for (const [field, value] of Object.entries(before)) response.setHeader(field, value)
      if (startsEarly) response.write('early ')
      next()
    })
    for (const [path, handler] of mounts) app.use(path, mountOnExpress(handler))
    return app
  },
  raw: (response: ServerResponse) => response,
  send(response: Response, status, text) {
    response.status(status).type('text/plain').send(text)
  },
}

export const onFastify: Platform = {
  wildcard: '*',
  async create(module, setup) {
    const { before = {}, startsEarly, trustProxy = false, mounts = [] } = setup
    const { parsesBodies = false } = setup
    const adapter = new FastifyAdapter({ trustProxy, forceCloseConnections: true })
    const fastify = adapter.getInstance()
    fastify.addHook('onRequest', async (_request, reply) => {
      reply.headers(before)
      if (startsEarly) reply.raw.write('early ')
    })
    for (const [prefix, handler] of mounts) {
      fastify.register(mountOnFastify(handler) as never, { prefix })
    }
    if (!parsesBodies) {
      fastify.removeAllContentTypeParsers()
      fastify.addContentTypeParser('*', (_request, _payload, done) => done(null))
    }
    return NestFactory.create(module as never, adapter, { ...settings, bodyParser: parsesBodies })
  },
  raw: (response: FastifyReply) => response.raw,
  send(response: FastifyReply, status, text) {
    response.code(status).type('text/plain').send(text)
  },
}

async function start(platform: Platform, setup: AppSetup): Promise<RunningApp> {
  const [first = { global: false as const }, ...others] = setup.limits ?? []
  const limiters = others.map((options) => RateLimitModule.forRoot(optionsOf(options)))
  // An application has one module, and limiters of others in front of it or behind it.
  const contexts = await Promise.all(
    limiters.map((module) => NestFactory.createApplicationContext(module, settings)),
  )
  const guards: readonly CanActivate[] = [
    { canActivate: showRequest },
    ...contexts.map((context) => context.get(RateLimitGuard)),
  ]
  const [shown, ...behind] = guards.map((useValue) => ({ provide: APP_GUARD, useValue }))
  class AppModule {}
  Module({
    imports: [RateLimitModule.forRoot(optionsOf(first))],
    controllers: [controllerOf(setup.routes ?? [{ path: '/' }], platform)],
    providers: [shown as Provider, { provide: APP_GUARD, useClass: RateLimitGuard }, ...behind],
  })(AppModule)
  const app = await platform.create(AppModule, setup)
  app.useGlobalFilters(filterOf(platform, setup))
  await app.listen(0, '127.0.0.1')
  const server: Server = app.getHttpServer()
  return {
    port: (server.address() as AddressInfo).port,
    server,
    async close() {
      await app.close()
      await Promise.all(contexts.map((context) => context.close()))
    },
  }
}

/** Puts the request into the context, as behaviours read the requests of every framework. */
function showRequest(context: ExecutionContext): boolean {
  const { method, url, headers } = context.switchToHttp().getRequest<LimitedRequest>()
  Object.assign(context, { method, url, headers })
  return true
}

/** Nest asks its guards of what has a handler, so all unknown paths have one. */
function controllerOf(routes: readonly Route[], platform: Platform): new () => object {
  class App {}
  Controller()(App)
  const verbs = { GET: Get, POST: Post, ALL: All, OPTIONS: Options }
  const methods = ['GET', 'POST', 'OPTIONS'] as const
  const unknown = methods.map((method) => ({ method, path: '/*', answer: { status: 404 } }))
  const handled: readonly Route[] = [...routes, ...unknown]
  for (const route of handled) {
    const name = `${route.method ?? 'GET'} ${route.path}`
    const value = handlerOf(route, platform)
    Object.defineProperty(App.prototype, name, { value, configurable: true })
    const descriptor = Object.getOwnPropertyDescriptor(App.prototype, name) as PropertyDescriptor
    Req()(App.prototype, name, 0)
    Res()(App.prototype, name, 1)
    const at = verbs[route.method ?? 'GET'](route.path.replace(/\*$/, platform.wildcard))
    at(App.prototype, name, descriptor)
    if (route.limits) RateLimit(optionsOf(route.limits))(App.prototype, name, descriptor)
  }
  return App
}

function handlerOf(route: Route, platform: Platform) {
  return async (request: LimitedRequest, response: never): Promise<void> => {
    const raw = platform.raw(response)
    if (route.streams) raw.write('first ')
    await route.reached?.(request)
    if (raw.headersSent) {
      raw.end('hello')
      return
    }
    for (const [name, value] of Object.entries(route.answer?.fields ?? {})) {
      ;(response as FastifyReply).header(name, value)
    }
    const status = statusOf(route, request)
    platform.send(response, status, status === 304 ? undefined : 'hello')
  }
}

function filterOf(platform: Platform, setup: AppSetup): ExceptionFilter {
  const ours = new RateLimitFilter()
  class EveryError implements ExceptionFilter {
    catch(error: Error, host: ArgumentsHost): void {
      if (error instanceof RateLimitException) {
        ours.catch(error, host)
        return
      }
      const isOurs = error instanceof HttpException
      if (!isOurs) setup.onError?.(error)
      const response = host.getArgByIndex<never>(1)
      if (platform.raw(response).headersSent) platform.raw(response).end()
      else platform.send(response, isOurs ? error.getStatus() : 500, error.message)
    }
  }
  Catch()(EveryError)
  return new EveryError()
}

function optionsOf({ reply, ...options }: Limits & { global?: false }): never {
  const handler: RateLimitHandler = async (_context, decision) =>
    new HttpException((await reply?.(decision)) ?? '', 418)
  return { ...options, ...(reply && { handler }) } as never
}
