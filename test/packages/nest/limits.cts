import 'reflect-metadata'
import { afterEach, expect, test } from '@jest/globals'
import { Controller, Get, type INestApplication, Module } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { Test } from '@nestjs/testing'
import { RateLimit, RateLimitGuard, RateLimitModule } from '@sluice/nest'

@Controller()
class Cats {
  readonly #guard: RateLimitGuard
  // By the metadata that this compiler emits.
  constructor(guard: RateLimitGuard) {
    this.#guard = guard
  }

  @Get()
  all(): number {
    return this.#guard.limiter.policies.length
  }

  @Get('strict')
  @RateLimit({ limit: 1 })
  strict(): string {
    return 'strict'
  }
}

@Module({
  imports: [RateLimitModule.forRootAsync({ useFactory: async () => ({ limit: 2, window: '1m' }) })],
  controllers: [Cats],
  providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
})
class AppModule {}

let app: INestApplication | undefined
afterEach(() => app?.close())

for (const Adapter of [ExpressAdapter, FastifyAdapter]) {
  test(`limits handlers on ${Adapter.name}`, async () => {
    const built = await Test.createTestingModule({ imports: [AppModule] }).compile()
    app = built.createNestApplication(new Adapter())
    await app.listen(0, '127.0.0.1')
    const url = await app.getUrl()
    const statuses: number[] = []
    for (const path of ['', '', '', '/strict', '/strict']) {
      const response = await fetch(url + path)
      statuses.push(response.status)
      if (response.status === 429) expect(response.headers.get('retry-after')).toBe('60')
    }
    expect(statuses).toEqual([200, 200, 429, 200, 429])
  })
}
