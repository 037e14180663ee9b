import { once } from 'node:events'
import {
  type ArgumentsHost,
  BadRequestException,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  HttpException,
  type INestApplication,
  type Provider,
  Req,
  Res,
  UseFilters,
  UseGuards,
} from '@nestjs/common'
import { APP_FILTER } from '@nestjs/core'
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js'
import { WsAdapter } from '@nestjs/platform-ws'
import { SubscribeMessage, WebSocketGateway, WsException } from '@nestjs/websockets'
import {
  RateLimit,
  RateLimitException,
  RateLimitFilter,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
  user,
} from '@sluice/nest'
import type { Request, Response } from 'express'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebSocket } from 'ws'
import { Cats, everywhere, one, start } from './nest-app.ts'

describe('refusals in Nest', () => {
  it.each(['Express', 'Fastify'] as const)(
    'are exceptions of Nest, and problems byte for byte with RateLimitFilter, on %s',
    async (platform) => {
      const filter: Provider = { provide: APP_FILTER, useClass: RateLimitFilter }
      const found = [
        ['application/json; charset=utf-8', []] as const,
        ['application/problem+json', [filter]] as const,
      ]
      for (const [type, filters] of found) {
        const { ask } = await start({ platform, providers: [everywhere, ...filters] })
        await ask()
        const refused = await ask()
        expect([refused.status, refused.headers.get('content-type')]).toEqual([429, type])
        expect(refused.headers.get('retry-after')).toBe('60')
        const body = await refused.text()
        expect(body).toHaveLength(143)
        expect(JSON.parse(body)['violated-policies']).toEqual(['default'])
      }
    },
  )

  it('send a string as Nest does', async () => {
    const limits = RateLimitModule.forRoot({ ...one, message: 'Slow down' })
    const { ask } = await start({ limits })
    await ask()
    expect(await (await ask()).json()).toEqual({ statusCode: 429, message: 'Slow down' })
  })

  @Catch(HttpException)
  class Shaping implements ExceptionFilter<HttpException> {
    catch(exception: HttpException, host: ArgumentsHost): void {
      const { decision } = exception as RateLimitException
      const error = { error: exception.message, waitMs: decision?.retryAfterMs }
      host.switchToHttp().getResponse<Response>().status(exception.getStatus()).json(error)
    }
  }
  @Catch()
  class CatchingAll implements ExceptionFilter {
    catch(exception: unknown, host: ArgumentsHost): void {
      const response = host.switchToHttp().getResponse<Response>()
      response.status(exception instanceof RateLimitException ? 430 : 500).send('caught')
    }
  }

  it('take the shape of a filter, on the controller or global', async () => {
    @Controller()
    @UseFilters(Shaping)
    class Shaped extends Cats {}
    const shaped = await start({ controllers: [Shaped] })
    await shaped.ask()
    const refused = await shaped.ask()
    expect(refused.headers.get('retry-after')).toBe('60')
    const waitMs = expect.closeTo(60_000, -3)
    expect(await refused.json()).toEqual({ error: 'Too Many Requests', waitMs })

    const prepare = (app: INestApplication) => void app.useGlobalFilters(new CatchingAll())
    const caught = await start({ prepare })
    expect(await caught.statuses('/', '/')).toEqual([200, 430])
  })

  it('are the exceptions of the option handler, or ours if it returns none', async () => {
    const handler = vi.fn((_context, { retryAfterMs }) =>
      retryAfterMs > 0 ? new BadRequestException('slow down') : undefined,
    )
    const made = await start({ limits: RateLimitModule.forRoot({ ...one, handler }) })
    expect(await made.statuses('/', '/')).toEqual([200, 400])

    const none = RateLimitModule.forRoot({ ...one, handler: () => undefined })
    expect(await (await start({ limits: none })).statuses('/', '/')).toEqual([200, 429])
  })
})

describe('contexts that are not of HTTP', () => {
  const graphql = (request?: Request, response?: Response) => {
    const args = [{}, {}, { req: request, res: response }]
    const context = new ExecutionContextHost(args, Cats, Cats.prototype.all)
    context.setType('graphql')
    return context
  }

  it('count by a key, and explain a missing one', async () => {
    const key = user((context) => context.getArgByIndex(2).user)
    const guardOf = async (options: RateLimitModuleOptions) => {
      const { app } = await start({ limits: RateLimitModule.forRoot(options) })
      return app.get(RateLimitGuard)
    }
    const keyed = await guardOf({ ...one, key })
    const asAda = () => {
      const context = graphql()
      context.getArgByIndex(2).user = 'ada'
      return keyed.canActivate(context)
    }
    expect(await asAda()).toBe(true)
    await expect(asAda()).rejects.toMatchObject({ status: 429, decision: { allowed: false } })
    await expect(keyed.canActivate(graphql())).rejects.toThrow(/none found for GRAPHQL/)
  })

  it('have address and headers by exchangeOf', async () => {
    const limits = RateLimitModule.forRoot({
      ...one,
      exchangeOf(context) {
        const { req: request, res: response } = context.getArgByIndex(2)
        return request && { request, response }
      },
    })
    @Controller()
    class Graphql {
      readonly #guard: RateLimitGuard
      constructor(guard: RateLimitGuard) {
        this.#guard = guard
      }
      @Get()
      async query(@Req() request: Request, @Res({ passthrough: true }) response: Response) {
        await this.#guard.canActivate(graphql(request, response))
        return 'hello'
      }
    }
    Reflect.defineMetadata('design:paramtypes', [RateLimitGuard], Graphql)
    const { ask } = await start({ limits, controllers: [Graphql], providers: [] })

    expect((await ask()).headers.get('ratelimit')).toBe('"default";r=0;t=60')
    const refused = await ask()
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
  })

  it('include WebSocket messages, limited by a key, with a WsException', async () => {
    @WebSocketGateway()
    @UseGuards(RateLimitGuard)
    @RateLimit({
      limit: 2,
      window: '1m',
      key: user((context) => context.switchToWs().getClient().name),
      handler: (_context, { retryAfterMs }) => new WsException({ denied: retryAfterMs > 0 }),
    })
    class Chat {
      readonly #names = ['ada', 'bob']
      handleConnection(client: { name?: string | undefined }): void {
        client.name = this.#names.shift()
      }
      @SubscribeMessage('say')
      say(): object {
        return { event: 'said', data: 'hello' }
      }
    }
    const { app } = await start({
      limits: RateLimitModule.forRoot({ global: false }),
      providers: [Chat],
      prepare: (app) => void app.useWebSocketAdapter(new WsAdapter(app)),
    })
    const url = (await app.getUrl()).replace('http', 'ws')
    const answers = async (count: number) => {
      const socket = new WebSocket(url)
      onTestFinished(() => socket.terminate())
      await once(socket, 'open')
      const found: unknown[] = []
      for (let i = 0; i < count; i += 1) {
        socket.send(JSON.stringify({ event: 'say', data: i }))
        const [message] = await once(socket, 'message')
        found.push(JSON.parse(String(message)))
      }
      return found
    }
    const said = { event: 'said', data: 'hello' }

    expect(await answers(3)).toEqual([
      said,
      said,
      { event: 'exception', data: expect.objectContaining({ denied: true }) },
    ])
    expect(await answers(1)).toEqual([said])
  })
})
