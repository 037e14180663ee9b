import { rateLimitPlugin } from '@sluice/fastify'
import type { FastifyInstance } from 'fastify'
import { describe, expect, it, vi } from 'vitest'
import { create, hello, limitedBy, statuses, two } from './fastify-app.ts'

describe('where the plugin applies', () => {
  it('limits routes declared before and after it, awaited or not', async () => {
    const app = create()
    app.get('/before', hello)
    app.register(rateLimitPlugin, two)
    app.get('/after', hello)

    expect(await statuses(app, 2, '/before')).toEqual([200, 200])
    expect(await statuses(app, 1, '/after')).toEqual([429])
  })

  it('limits a route by its own options, declared before or after', async () => {
    const app = create()
    const config = { rateLimit: { limit: 1, window: '1m' } } as const
    app.get('/before', { config }, hello)
    app.register(rateLimitPlugin, two)
    app.get('/after', { config }, hello)
    app.get('/off', { config: { rateLimit: false } }, hello)

    expect(await statuses(app, 2, '/before')).toEqual([200, 429])
    expect(await statuses(app, 2, '/after')).toEqual([200, 429])
    expect(await statuses(app, 5, '/off')).toEqual(Array(5).fill(200))
    expect(await statuses(app, 1, '/nowhere')).toEqual([404])
  })

  it('stays in the context that it is registered in', async () => {
    const app = create()
    app.register(async (child) => {
      await child.register(rateLimitPlugin, two)
      child.get('/limited', hello)
      child.register(async (grandchild) => {
        grandchild.get('/limited-too', hello)
      })
    })
    app.get('/free', hello)

    expect(await statuses(app, 2, '/limited')).toEqual([200, 200])
    expect(await statuses(app, 1, '/limited-too')).toEqual([429])
    expect(await statuses(app, 5, '/free')).toEqual(Array(5).fill(200))
  })

  it('limits unknown URLs, with a not-found handler of the application', async () => {
    const app = create()
    app.setNotFoundHandler((_request, reply) => reply.code(404).send('mine'))
    app.register(rateLimitPlugin, two)
    expect(await statuses(app, 3, '/nowhere')).toEqual([404, 404, 429])
    expect(await statuses(app, 1, '/%2e%2e/x', 'POST')).toEqual([429])
  })

  it('limits unknown URLs of a context with its own not-found handler', async () => {
    const app = create()
    app.register(rateLimitPlugin, two)
    const child = async (context: FastifyInstance) =>
      context.setNotFoundHandler(async (_request, reply) => reply.code(404).send())
    app.register(child, { prefix: '/v1' })

    expect(await statuses(app, 3, '/v1/nowhere')).toEqual([404, 404, 429])
  })

  it('registered twice, applies the options of a route once, and false switches off both', async () => {
    const app = await limitedBy(two)
    await app.register(rateLimitPlugin, { limit: 5, window: '1h' })
    app.get('/own', { config: { rateLimit: { limit: 3, window: '1m' } } }, hello)
    app.get('/off', { config: { rateLimit: false } }, hello)

    expect(await statuses(app, 4, '/own')).toEqual([200, 200, 200, 429])
    expect(await statuses(app, 9, '/off')).toEqual(Array(9).fill(200))
  })

  it("registered for two hooks, keeps one's limit on routes with options for the other", async () => {
    const app = await limitedBy({ ...two, name: 'by-address' })
    await app.register(rateLimitPlugin, { limit: 9, window: '1m', hook: 'preHandler' })
    app.get('/own', { config: { rateLimit: { limit: 8, window: '1m', name: 'own' } } }, hello)
    app.get('/off', { config: { rateLimit: false } }, hello)

    const answer = await app.inject('/own')
    expect(answer.headers.ratelimit).toBe('"by-address";r=1;t=60, "own";r=7;t=60')
    expect(await statuses(app, 2, '/own')).toEqual([200, 429])
    expect(await statuses(app, 3, '/off')).toEqual([200, 200, 200])
  })

  it("registered in a context and its child, the nearest applies a route's options", async () => {
    const app = await limitedBy({ ...two, key: () => 'outer' })
    app.register(async (child) => {
      await child.register(rateLimitPlugin, { limit: 9, window: '1m', key: () => 'inner' })
      child.get('/own', { config: { rateLimit: { ...two, observers: { onDecision } } } }, hello)
    })
    const onDecision = vi.fn()

    expect(await statuses(app, 3, '/own')).toEqual([200, 200, 429])
    expect(onDecision.mock.calls[0]?.[0].checks[0].key).toContain('inner')
    expect(onDecision).toHaveBeenCalledTimes(3)
  })

  it('a context created between two registrations is limited by the first', async () => {
    const app = create()
    const config = { rateLimit: { limit: 1, window: '1m' } } as const
    await app.register(rateLimitPlugin, two)
    await app.register(async (child) => {
      child.get('/own', { config }, hello)
    })
    await app.register(rateLimitPlugin, { limit: 9, window: '1m' })

    expect(await statuses(app, 2, '/own')).toEqual([200, 429])
  })
})
