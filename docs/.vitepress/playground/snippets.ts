import type { Lane } from './simulate.ts'

/** The application around the limit, by framework. */
const apps: Readonly<Record<string, (options: string) => string>> = {
  Express: (options) => `import { rateLimit } from '@sluice/express'
import express from 'express'

export const app = express()
app.use(rateLimit(${options}))`,
  Fastify: (options) => `import { rateLimitPlugin } from '@sluice/fastify'
import fastify from 'fastify'

export const app = fastify()
await app.register(rateLimitPlugin, ${options})`,
  Koa: (options) => `import { rateLimit } from '@sluice/koa'
import Koa from 'koa'

export const app = new Koa()
app.use(rateLimit(${options}))`,
  Hono: (options) => `import { rateLimit } from '@sluice/hono'
import { Hono } from 'hono'

export const app = new Hono()
app.use(rateLimit(${options}))`,
  NestJS: (options) => `import { Module } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { RateLimitGuard, RateLimitModule } from '@sluice/nest'

@Module({
  imports: [RateLimitModule.forRoot(${options})],
  providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
})
export class AppModule {}`,
  fetch: (options) => `import { rateLimit } from '@sluice/fetch'

const limit = rateLimit(${options})
export const handler = limit(() => new Response('hello'))`,
  'without HTTP': (options) => `import { createLimiter, memoryStore } from '@sluice/core'

export const limiter = createLimiter({ ...${options}, store: memoryStore() })
export const decision = await limiter.consume('user:42')`,
}

export const frameworks: readonly string[] = Object.keys(apps)

/** The code of a policy for a framework. */
export function snippet(framework: string, { algorithm, limit, window }: Lane): string {
  const named = algorithm === 'sliding-log' ? '' : `, algorithm: '${algorithm}'`
  return apps[framework]?.(`{ limit: ${limit}, window: '${window}'${named} }`) ?? ''
}
