import { connect } from 'node:http2'
import { text } from 'node:stream/consumers'
import { memoryStore } from '@sluice/core'
import plugin, { mount, type RateLimitPluginOptions, rateLimitPlugin } from '@sluice/fastify'
import fastify, { type FastifyInstance } from 'fastify'
import { describe, expect, it, onTestFinished, vi } from 'vitest'

const two: RateLimitPluginOptions = { limit: 2, window: '1m' }
const hello = async () => 'hello'

function create(): FastifyInstance {
  const app = fastify()
  onTestFinished(() => app.close())
  return app
}

async function statuses(app: FastifyInstance, count: number, url = '/', method = 'GET') {
  const found: number[] = []
  for (let i = 0; i < count; i += 1) {
    found.push((await app.inject({ method: method as 'GET', url })).statusCode)
  }
  return found
}

describe('where the plugin applies', () => {
  it('is the default export too', () => {
    expect(plugin).toBe(rateLimitPlugin)
  })

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
    const config = { rateLimit: { limit: 1, window: '1m' } }
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

  it.each([
    ['the default', undefined],
    [
      'a custom',
      (_request: unknown, reply: { code(n: number): { send(x: string): void } }) =>
        reply.code(404).send('mine'),
    ],
  ])('limits unknown URLs, with %s not-found handler', async (_, notFound) => {
    const app = create()
    if (notFound) app.setNotFoundHandler(notFound)
    app.register(rateLimitPlugin, two)

    expect(await statuses(app, 3, '/nowhere')).toEqual([404, 404, 429])
    expect(await statuses(app, 1, '/%2e%2e/x', 'POST')).toEqual([429])
  })

  it('limits unknown URLs of a context with a not-found handler of its own', async () => {
    const app = create()
    app.register(rateLimitPlugin, two)
    app.register(
      async (child) => child.setNotFoundHandler(async (_request, reply) => reply.code(404).send()),
      { prefix: '/v1' },
    )

    expect(await statuses(app, 3, '/v1/nowhere')).toEqual([404, 404, 429])
  })

  it('registered twice in one context, counts twice', async () => {
    const app = create()
    await app.register(rateLimitPlugin, { name: 'loose', limit: 9, window: '1m' })
    await app.register(rateLimitPlugin, { name: 'tight', limit: 2, window: '1m' })
    app.get('/', hello)

    const answer = await app.inject('/')

    expect(answer.headers.ratelimit).toBe('"loose";r=8;t=60, "tight";r=1;t=60')
    expect(await statuses(app, 2)).toEqual([200, 429])
  })

  it('registered twice, applies the options of a route once, and false switches off both', async () => {
    const app = create()
    await app.register(rateLimitPlugin, two)
    await app.register(rateLimitPlugin, { limit: 5, window: '1h' })
    app.get('/own', { config: { rateLimit: { limit: 3, window: '1m' } } }, hello)
    app.get('/off', { config: { rateLimit: false } }, hello)

    expect(await statuses(app, 4, '/own')).toEqual([200, 200, 200, 429])
    expect(await statuses(app, 9, '/off')).toEqual(Array(9).fill(200))
  })

  it('registered in a context and in its child, lets the nearest speak for the options of a route', async () => {
    const app = create()
    await app.register(rateLimitPlugin, { ...two, key: () => 'outer' })
    app.register(async (child) => {
      await child.register(rateLimitPlugin, { limit: 9, window: '1m', key: () => 'inner' })
      child.get('/own', { config: { rateLimit: { ...two, onDecision } } }, hello)
    })
    const onDecision = vi.fn()

    expect(await statuses(app, 3, '/own')).toEqual([200, 200, 429])
    expect(onDecision.mock.calls[0]?.[0].checks[0].key).toContain('inner')
    expect(onDecision).toHaveBeenCalledTimes(3)
  })

  it('a context that was made between two registrations has its routes limited by the first', async () => {
    const app = create()
    const config = { rateLimit: { limit: 1, window: '1m' } }
    await app.register(rateLimitPlugin, two)
    await app.register(async (child) => {
      child.get('/own', { config }, hello)
    })
    await app.register(rateLimitPlugin, { limit: 9, window: '1m' })

    expect(await statuses(app, 2, '/own')).toEqual([200, 429])
  })
})

describe('the options of a route', () => {
  it('inherit the store, the key and the rest from the plugin', async () => {
    const app = create()
    const key = vi.fn(() => 'ada')
    await app.register(rateLimitPlugin, { ...two, key, statusCode: 420, headers: ['legacy-delta'] })
    app.get('/own', { config: { rateLimit: { limit: 1, window: '30s' } } }, hello)
    await app.inject('/own')
    const answer = await app.inject('/own')

    expect(answer.statusCode).toBe(420)
    expect(answer.headers['x-ratelimit-reset']).toBe('30')
    expect(answer.headers.ratelimit).toBeUndefined()
    expect(key).toHaveBeenCalledTimes(2)
  })

  it('without policies, have those of the plugin, counted for the route', async () => {
    const app = create()
    await app.register(rateLimitPlugin, two)
    app.get('/', hello)
    app.get('/dear', { config: { rateLimit: { cost: 2 } } }, hello)

    expect(await statuses(app, 2, '/dear')).toEqual([200, 429])
    expect(await statuses(app, 3)).toEqual([200, 200, 429])
  })

  it('count alike on every server, whichever route was asked first', async () => {
    const store = memoryStore()
    const server = async () => {
      const app = create()
      app.register(rateLimitPlugin, { ...two, store, key: () => 'ada' })
      for (const url of ['/a', '/b']) {
        app.get(url, { config: { rateLimit: { limit: 2, window: '1m' } } }, hello)
      }
      await app.ready()
      return app
    }
    const [one, other] = [await server(), await server()]

    expect(await statuses(one, 1, '/a')).toEqual([200])
    expect(await statuses(other, 1, '/b')).toEqual([200])
    expect(await statuses(other, 2, '/a')).toEqual([200, 429])
    expect(await statuses(one, 2, '/b')).toEqual([200, 429])
  })

  it('shared by two routes, count each apart', async () => {
    const app = create()
    await app.register(rateLimitPlugin, two)
    const config = { rateLimit: { limit: 1, window: '1m' } }
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
    const app = create()
    await app.register(rateLimitPlugin, { global: false })
    app.get('/', hello)
    app.get('/own', { config: { rateLimit: two } }, hello)

    expect(await statuses(app, 5)).toEqual(Array(5).fill(200))
    expect(await statuses(app, 3, '/own')).toEqual([200, 200, 429])
  })

  it('are checked when the route is declared, or else when it is first asked for', async () => {
    const wrong = { config: { rateLimit: { limit: -1, window: '1m' } } }
    const app = create()
    app.get('/before', wrong, hello)
    await app.register(rateLimitPlugin, two)

    expect(() => app.get('/after', wrong, hello)).toThrow(/limit must be a whole number/)
    const answer = await app.inject('/before')
    expect([answer.statusCode, answer.json().code]).toEqual([500, 'SLUICE_LIMIT_INVALID'])
  })

  it.each([5, 'x', null, true])('cannot be %s', async (rateLimit) => {
    const app = create()
    await app.register(rateLimitPlugin, two)

    const config = { rateLimit: rateLimit as never }
    expect(() => app.get('/', { config }, hello)).toThrow(/config.rateLimit must be an object/)
  })
})

describe('the life of a request', () => {
  it.each(['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const)(
    'is decided in %s, of whatever store and functions',
    async (hook) => {
      const app = create()
      const key = async () => 'ada'
      await app.register(rateLimitPlugin, { ...two, hook, key })
      app.post('/', hello)

      const post = async () =>
        (await app.inject({ method: 'POST', url: '/', payload: {} })).statusCode
      expect([await post(), await post(), await post()]).toEqual([200, 200, 429])
    },
  )

  it('sees the body, and the user that was authenticated, in preHandler', async () => {
    const app = create()
    await app.register(rateLimitPlugin, {
      limit: 10,
      window: '1m',
      hook: 'preHandler',
      cost: ({ body }) => (body as { items: unknown[] }).items.length,
    })
    app.post('/', hello)
    const payload = { items: [1, 2, 3] }

    const answer = await app.inject({ method: 'POST', url: '/', payload })

    expect(answer.headers['x-ratelimit-remaining']).toBe('7')
  })

  it('has the decision on the request, undefined where it was skipped', async () => {
    const app = create()
    await app.register(rateLimitPlugin, { ...two, skip: ({ url }) => url === '/free' })
    for (const url of ['/', '/free']) {
      app.get(url, async (request) => ({ allowed: request.rateLimit?.allowed }))
    }

    expect((await app.inject('/')).json()).toEqual({ allowed: true })
    expect((await app.inject('/free')).json()).toEqual({})
  })

  it('sends what a handler returns', async () => {
    const app = create()
    const handler = async (
      _request: unknown,
      _reply: unknown,
      { retryAfterMs }: { retryAfterMs: number },
    ) => ({
      retryAfterMs,
    })
    await app.register(rateLimitPlugin, { limit: 0, window: '1m', message: 'no', handler })

    const answer = await app.inject('/')

    expect(answer.statusCode).toBe(429)
    expect(answer.json()).toEqual({ retryAfterMs: null })
  })

  it("runs the application's own hooks on a refusal, so that CORS and logs see it", async () => {
    const app = create()
    const onSend = vi.fn()
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('access-control-allow-origin', '*')
    })
    app.addHook('onSend', async () => onSend())
    await app.register(rateLimitPlugin, { limit: 0, window: '1m' })

    const answer = await app.inject('/')

    expect(answer.headers['access-control-allow-origin']).toBe('*')
    expect(onSend).toHaveBeenCalledTimes(1)
  })

  it.each<[RateLimitPluginOptions, RegExp]>([
    [{}, /no policy: give limit and window/],
    [{ ...two, hook: 'onSend' as never }, /hook must be one of 'onRequest'/],
    [{ ...two, global: 'yes' as never }, /global must be true or false/],
    [
      { ...two, hooks: 1 } as never,
      /rateLimitPlugin: there is no option 'hooks' \(did you mean 'hook'/,
    ],
  ])('does not begin with options %o', async (options, message) => {
    await expect(create().register(rateLimitPlugin, options)).rejects.toThrow(message)
  })
})

describe('HTTP/2', () => {
  it('H36: lower-case names, equal values, and exactly the limit of 200 streams at once', async () => {
    const app = fastify({ http2: true })
    onTestFinished(() => app.close())
    await app.register(rateLimitPlugin, { limit: 25, window: '1m' })
    app.get('/', hello)
    const session = connect(await app.listen({ port: 0, host: '127.0.0.1' }))
    onTestFinished(() => session.close())

    const get = async () => {
      const stream = session.request({ ':path': '/' })
      const headers = await new Promise<Record<string, unknown>>((resolve) => {
        stream.once('response', resolve)
      })
      return { headers, body: await text(stream) }
    }
    const answers = await Promise.all(Array.from({ length: 200 }, get))

    expect(answers.filter(({ headers }) => headers[':status'] === 200)).toHaveLength(25)
    const refused = answers.find(({ headers }) => headers[':status'] === 429)
    expect(refused?.headers).toMatchObject({
      'ratelimit-policy': '"default";q=25;w=60',
      'retry-after': '60',
      'content-type': 'application/problem+json',
    })
    expect(JSON.parse(refused?.body ?? '').status).toBe(429)
  })
})

describe('mount', () => {
  it('serves a handler under a prefix, and leaves to others what it does not know', async () => {
    const app = create()
    const handler = mount(async ({ method, path, query }) => {
      if (path === '/boom') throw new Error('boom')
      if (path === '/nothing') return undefined
      return {
        status: 201,
        headers: { 'x-handled': 'yes' },
        body: `${method} ${path} ${query.get('q')}`,
      }
    })
    app.register(handler, { prefix: '/limits' })

    const answer = await app.inject('/limits/a?q=1')
    expect([answer.statusCode, answer.body]).toEqual([201, 'GET /a 1'])
    expect(answer.headers['x-handled']).toBe('yes')
    expect((await app.inject('/limits')).body).toBe('GET / null')
    expect((await app.inject('/limits/nothing')).statusCode).toBe(404)
    expect((await app.inject('/limits/boom')).json().message).toBe('boom')
  })
})
