import 'reflect-metadata'
import { Controller, Get, type INestApplication, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { RateLimitGuard, RateLimitModule } from '@sluice/nest'
import { describe, expect, it } from 'vitest'

@Controller()
class Cats {
  @Get()
  all() {
    return 'hello'
  }
}
@Module({
  imports: [RateLimitModule.forRoot({ limit: 1, window: '1m' })],
  controllers: [Cats],
  providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
})
class App {}

describe('thin', () => {
  it.each(['express', 'fastify'])('%s', async (platform) => {
    const app: INestApplication =
      platform === 'express'
        ? await NestFactory.create(App, { logger: ['error'] })
        : await NestFactory.create(App, new FastifyAdapter(), { logger: ['error'] })
    await app.listen(0, '127.0.0.1')
    const url = await app.getUrl()
    const first = await fetch(url)
    expect([first.status, await first.text()]).toEqual([200, 'hello'])
    const second = await fetch(url)
    console.log(second.status, [...second.headers], await second.text())
    await app.close()
  })
})
