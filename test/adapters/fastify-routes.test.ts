import { memoryStore } from '@sluice/core'
import { rateLimitPlugin } from '@sluice/fastify'
import type { FastifyInstance } from 'fastify'
import { describe, expect, it } from 'vitest'
import { create, hello, limitedBy, statuses, two } from './fastify-app.ts'

describe('the options of a route', () => {
  it("without policies, use the plugin's, counted for the route", async () => {
    const app = await limitedBy(two)
    app.get('/', hello)
    app.get('/dear', { config: { rateLimit: { cost: 2 } } }, hello)
    expect(await statuses(app, 2, '/dear')).toEqual([200, 429])
    expect(await statuses(app, 3)).toEqual([200, 200, 429])
  })

  it('count the same on every server, whichever route was requested first', async () => {
    const store = memoryStore()
    const server = async () => {
      const app = await limitedBy({ ...two, store, key: () => 'ada' })
      for (const url of ['/a', '/b']) app.get(url, { config: { rateLimit: two } }, hello)
      return app
    }
    const [one, other] = [await server(), await server()]

    expect(await statuses(one, 1, '/a')).toEqual([200])
    expect(await statuses(other, 1, '/b')).toEqual([200])
    expect(await statuses(other, 2, '/a')).toEqual([200, 429])
    expect(await statuses(one, 2, '/b')).toEqual([200, 429])
  })

  it('shared by two routes, count each separately', async () => {
    const app = await limitedBy(two)
    const config = { rateLimit: { limit: 1, window: '1m' } } as const
    app.get('/a', { config }, hello)
    app.get('/b', { config }, hello)
    app.route({ method: ['PUT', 'PATCH'], url: '/c', config, handler: hello })
    app.all('/all', { config }, hello)

    expect(await statuses(app, 2, '/a')).toEqual([200, 429])
    expect(await statuses(app, 2, '/b')).toEqual([200, 429])
    expect(await statuses(app, 1, '/a', 'HEAD')).toEqual([429])
    expect(await statuses(app, 1, '/c', 'PUT')).toEqual([200])
    expect(await statuses(app, 1, '/c', 'PATCH')).toEqual([429])
    expect(await statuses(app, 1, '/all', 'DELETE')).toEqual([200])
    expect(await statuses(app, 1, '/all', 'POST')).toEqual([429])
  })

  it('alone are enforced with global: false', async () => {
    const app = await limitedBy({ global: false })
    app.get('/', hello)
    app.get('/own', { config: { rateLimit: two } }, hello)
    expect(await statuses(app, 5)).toEqual(Array(5).fill(200))
    expect(await statuses(app, 3, '/own')).toEqual([200, 200, 429])
  })

  it('are checked when the route is declared, or on its first request', async () => {
    const wrong = { config: { rateLimit: { limit: -1, window: '1m' } } } as const
    const app = create()
    app.get('/before', wrong, hello)
    await app.register(rateLimitPlugin, two)

    const place = /^config\.rateLimit of GET \/after: limit must be a whole (?!.*config\.rateLimit)/
    expect(() => app.get('/after', wrong, hello)).toThrow(place)
    const answer = await app.inject('/before')
    expect(answer.json()).toMatchObject({
      statusCode: 500,
      code: 'SLUICE_LIMIT_INVALID',
      message: expect.stringMatching(/^config\.rateLimit of GET \/before: limit must be/),
    })
  })

  it.each([5, [], null, true])('cannot be %s', async (rateLimit) => {
    const app = await limitedBy(two)
    const config = { rateLimit: rateLimit as never }
    expect(() => app.get('/', { config }, hello)).toThrow(
      /config\.rateLimit of GET \/ must be options, the name of a policy, or false/,
    )
  })
})

describe('routes in the options of the plugin', () => {
  it("are relative to the prefix of the plugin's context", async () => {
    const app = create()
    const routes = { 'GET /own/:id': { ...two, limit: 1 } }
    const api = async (context: FastifyInstance) => {
      await context.register(rateLimitPlugin, { ...two, routes })
      context.get('/own/:id', hello)
      context.get('/', hello)
    }
    app.register(api, { prefix: '/api' })
    app.get('/own/:id', hello)

    expect(await statuses(app, 1, '/api/own/1')).toEqual([200])
    expect(await statuses(app, 1, '/api/own/2')).toEqual([429])
    expect(await statuses(app, 3, '/api/')).toEqual([200, 200, 429])
    expect(await statuses(app, 3, '/own/1')).toEqual([200, 200, 200])
  })

  it('apply to unknown URLs too', async () => {
    const app = await limitedBy({ ...two, routes: { '/api/*': { ...two, limit: 1 } } })
    expect(await statuses(app, 2, '/api/nowhere')).toEqual([404, 429])
    expect(await statuses(app, 3, '/nowhere')).toEqual([404, 404, 429])
  })

  it('apply alone with global: false', async () => {
    const app = await limitedBy({ global: false, routes: { '/own': { ...two, limit: 1 } } })
    app.get('/', hello)
    app.get('/own', hello)
    expect(await statuses(app, 2, '/own')).toEqual([200, 429])
    expect(await statuses(app, 5)).toEqual(Array(5).fill(200))
  })

  it("are overridden by the route's own limits", async () => {
    const none = { ...two, limit: 0 }
    const app = await limitedBy({ ...two, routes: { '/own': none, '/free': none } })
    app.get('/own', { config: { rateLimit: two } }, hello)
    app.get('/free', { config: { rateLimit: false } }, hello)

    expect(await statuses(app, 3, '/own')).toEqual([200, 200, 429])
    expect(await statuses(app, 3, '/free')).toEqual([200, 200, 200])
  })

  it('are checked with the plugin, with global: false too', async () => {
    const wrong = { limit: -1, window: '1m' } as const
    const routed = limitedBy({ ...two, routes: { '/x': wrong } })
    await expect(routed).rejects.toThrow(/routes\['\/x'\]: limit must be/)
    await expect(limitedBy({ global: false, ...wrong })).rejects.toThrow(/limit must be/)
  })
})

describe('config.rateLimit', () => {
  it('may be the name of a policy, with one quota for all its users', async () => {
    const app = await limitedBy({ ...two, profiles: { heavy: { limit: 3, window: '1m' } } })
    app.get('/a', { config: { rateLimit: 'heavy' } }, hello)
    app.get('/b', { config: { rateLimit: { policies: ['heavy'], cost: 2 } } }, hello)

    expect(() => app.get('/c', { config: { rateLimit: 'light' } }, hello)).toThrow(
      /config\.rateLimit.*names 'light'.*there are heavy/,
    )
    expect(await statuses(app, 1, '/b')).toEqual([200])
    expect(await statuses(app, 2, '/a')).toEqual([200, 429])
  })

  it('cannot be added without a limiter', async () => {
    const app = await limitedBy({ global: false })
    const own = { rateLimit: { ...two, combine: 'add' } } as const
    expect(() => app.get('/own', { config: own }, hello)).toThrow(/no policies for all requests/)
  })
})
