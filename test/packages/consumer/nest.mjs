// Nest 12 has no CommonJS. Without a compiler, decorators are calls.
import 'reflect-metadata'
import assert from 'node:assert/strict'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { RateLimitGuard, RateLimitModule } from '@sluice/nest'

class Cats {
  all() {
    return 'hello'
  }
}
Get()(Cats.prototype, 'all', Object.getOwnPropertyDescriptor(Cats.prototype, 'all'))
Controller()(Cats)

class AppModule {}
Module({
  imports: [RateLimitModule.forRoot({ limit: 1, window: '1m' })],
  controllers: [Cats],
  providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
})(AppModule)

const app = await NestFactory.create(AppModule, { logger: false, forceCloseConnections: true })
await app.listen(0, '127.0.0.1')
const url = await app.getUrl()
const responses = [await fetch(url), await fetch(url)]
assert.deepEqual(
  responses.map(({ status }) => status),
  [200, 429],
)
await app.close()
console.log('nest: ok')
