import { type RateLimitPluginOptions, rateLimitPlugin } from '@sluice/fastify'
import fastify, { type FastifyInstance } from 'fastify'
import { onTestFinished } from 'vitest'
import { repeated } from '../support/in-turn.ts'

export const two = { limit: 2, window: '1m' } as const satisfies RateLimitPluginOptions
export const hello = async () => 'hello'

export function create(): FastifyInstance {
  const app = fastify()
  onTestFinished(() => app.close())
  return app
}

/** An application that the plugin limits. */
export async function limitedBy(options: RateLimitPluginOptions): Promise<FastifyInstance> {
  const app = create()
  await app.register(rateLimitPlugin, options)
  return app
}

export function statuses(app: FastifyInstance, count: number, url = '/', method = 'GET') {
  return repeated(
    count,
    async () => (await app.inject({ method: method as 'GET', url })).statusCode,
  )
}
