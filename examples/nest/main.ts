// NestJS: a limit for everybody by address, a tighter one for a handler, and two quotas for clients with an API key.
import 'reflect-metadata'
import {
  All,
  Controller,
  Get,
  Module,
  NotFoundException,
  Post,
  Req,
  UnauthorizedException,
} from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import {
  all,
  apiKey,
  firstOf,
  ip,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  type RequestDecision,
  SkipRateLimit,
  user,
} from '@sluice/nest'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

const url = process.env.REDIS_URL
const shared = url ? { store: redisStore(new Redis(url)) } : {}

// Stands in for a database: anybody can make up a key, so only issued keys count.
const issued = new Set(['a', 'b'])

@Controller()
class AppController {
  // Logins, in addition to the general limit: 5 attempts per minute for an account from one address, and 20 for the address.
  @Post('login')
  @RateLimit({
    combine: 'add',
    policies: [
      {
        limit: 5,
        window: '1m',
        key: all(
          user((context) => context.switchToHttp().getRequest().body?.name),
          ip(),
        ),
      },
      { limit: 20, window: '1m', key: ip() },
    ],
  })
  login(): never {
    throw new UnauthorizedException('wrong password')
  }

  // The API: two quotas at once, all or nothing, by API key, otherwise by address. A search costs 5 units.
  @Get('api/search')
  @RateLimit({
    key: firstOf(apiKey({ verify: (key) => issued.has(key) }), ip()),
    cost: 5,
    policies: [
      { name: 'burst', limit: 10, window: '1s' },
      { name: 'sustained', limit: 600, window: '1m' },
    ],
  })
  search(@Req() request: { rateLimit?: RequestDecision }): object {
    return { left: request.rateLimit?.outcomes.map(({ remaining }) => remaining) }
  }

  @Get('health')
  @SkipRateLimit()
  health(): string {
    return 'ok'
  }

  // Guards run only if there is a handler: with this one, unknown paths are limited too.
  @All('{*path}')
  unknown(): never {
    throw new NotFoundException()
  }
}

// Everything: 100 requests a minute for each address.
@Module({
  imports: [RateLimitModule.forRoot({ ...shared, limit: 100, window: '1m' })],
  controllers: [AppController],
  providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
await app.listen(Number(process.env.PORT ?? 3000))
console.log(`listening on ${new URL(await app.getUrl()).port}`)
