import { Controller, type ExecutionContext, Get } from '@nestjs/common'
import {
  durationMs,
  firstOf,
  type HandlerRateLimit,
  ip,
  type KeyResolver,
  RateLimit,
  type RateLimitException,
  type RateLimitGuard,
  type RateLimitHandler,
  RateLimitKey,
  RateLimitModule,
  type RateLimitModuleOptions,
  SkipRateLimit,
  user,
} from '@sluice/nest'
import type { FastifyRequest } from 'fastify'

const minute = { limit: 100, window: '1m' } as const
const { forRoot } = RateLimitModule

// Functions that are written inline know the context of Nest, inside the resolvers too: express.test-d.ts tries each of them.
forRoot({ ...minute, key: (context) => context.getHandler().name })
forRoot({ ...minute, key: async (context) => context.switchToHttp().getRequest().user.id })
forRoot({ ...minute, key: user((context) => context.switchToWs().getClient().id) })
forRoot({ ...minute, handler: (_context, { retryAfterMs }) => new Error(`${retryAfterMs}`) })
forRoot({ ...minute, handler: 'throw' })
forRoot({ global: false })
forRoot({
  ...minute,
  exchangeOf(context) {
    const [, , { req, res }] = context.getArgs()
    return { request: req, response: res }
  },
})
RateLimitModule.forRootAsync({ useFactory: async () => minute })
RateLimitModule.forRootAsync({
  inject: ['CONFIG'],
  useFactory: (config: { getOrThrow(name: string): string }) => ({
    limit: Number(config.getOrThrow('RATE_LIMIT')),
    window: durationMs(config.getOrThrow('RATE_WINDOW'), 'RATE_WINDOW'),
  }),
})

// Decorators stand on controllers and handlers.
@Controller()
@RateLimit({ limit: 5 })
@RateLimitKey(user((context) => context.switchToHttp().getRequest().user?.id))
class Limited {
  readonly #guard: RateLimitGuard
  constructor(guard: RateLimitGuard) {
    this.#guard = guard
  }
  @Get('a')
  @RateLimit('burst')
  async a(): Promise<boolean | undefined> {
    return (await this.#guard.limiter.peek('ada')).allowed
  }
  @Get('b')
  @SkipRateLimit()
  b(): void {
    const strict: HandlerRateLimit = { policies: ['burst', { limit: 5, window: '1m' }] }
    RateLimit(strict)
  }
}
export const controllers: readonly object[] = [Limited]

const byUser: KeyResolver<ExecutionContext> = firstOf((context) => context.getType(), ip())
const handler: RateLimitHandler = (context) => new Error(context.getType())
const options: RateLimitModuleOptions = { ...minute, key: byUser, handler }
forRoot(options)
export function waitOf(exception: RateLimitException): number | undefined {
  return exception.decision?.retryAfterMs
}

const ofFastify = (request: FastifyRequest) => request.routeOptions.url
// @ts-expect-error Fastify's request is no context of Nest.
forRoot({ ...minute, key: ofFastify })
// @ts-expect-error Nor inside a resolver.
user(ofFastify)
// @ts-expect-error
forRoot({ ...minute, hook: 'onRequest' })
// @ts-expect-error
forRoot({ limit: '100', window: '1m' })
// @ts-expect-error Only with `global: false` there need be no policies.
forRoot({})
// @ts-expect-error
RateLimit({ limit: '5' })
// @ts-expect-error
RateLimitModule.forRootAsync({ useFactory: () => ({ limit: '5' }) })
