import 'reflect-metadata'
import {
  Controller,
  type DynamicModule,
  Get,
  type INestApplication,
  Module,
  type Provider,
} from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { RateLimitGuard, RateLimitModule } from '@sluice/nest'
import { onTestFinished } from 'vitest'
import { inTurn } from '../support/in-turn.ts'

export const one = { limit: 1, window: '1m', headers: ['draft-11'] } as const
export const everywhere: Provider = { provide: APP_GUARD, useClass: RateLimitGuard }
const platforms = { Express: ExpressAdapter, Fastify: FastifyAdapter }

interface AppSetup {
  readonly limits?: DynamicModule
  readonly controllers?: (new (...args: never[]) => object)[]
  readonly providers?: Provider[]
  readonly platform?: keyof typeof platforms
  readonly prepare?: (app: INestApplication) => void
}

/** Starts an application that ends with the test. */
export async function start({
  limits = RateLimitModule.forRoot(one),
  controllers = [Cats],
  providers = [everywhere],
  platform = 'Express',
  prepare,
}: AppSetup) {
  class AppModule {}
  Module({ imports: [limits], controllers, providers })(AppModule)
  const app = await NestFactory.create(AppModule, new platforms[platform](), {
    logger: false,
    abortOnError: false,
    forceCloseConnections: true,
  })
  onTestFinished(() => app.close())
  prepare?.(app)
  await app.listen(0, '127.0.0.1')
  const url = await app.getUrl()
  const ask = (path = '/', init: RequestInit = {}) => fetch(url + path, init)
  return {
    app,
    ask,
    statuses: (...paths: string[]) => inTurn(paths, async (path) => (await ask(path)).status),
  }
}

/** A controller whose methods answer GET with their names, each under its decorators, from the nearest on. */
export function controllerOf(
  name: string,
  methods: Readonly<Record<string, readonly MethodDecorator[]>>,
  ...decorators: readonly ClassDecorator[]
): new () => object {
  const { [name]: made = Object } = { [name]: class {} }
  for (const [method, own] of Object.entries(methods)) {
    const descriptor = { value: () => method, configurable: true, writable: true }
    for (const decorate of [Get(method), ...own]) decorate(made.prototype, method, descriptor)
    Object.defineProperty(made.prototype, method, descriptor)
  }
  for (const decorate of [Controller(), ...decorators]) decorate(made)
  return made
}

@Controller()
export class Cats {
  @Get()
  all(): string {
    return 'hello'
  }
}
