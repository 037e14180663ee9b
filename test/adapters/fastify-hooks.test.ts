import { all, type Decision, ip, rateLimitPlugin, user } from '@sluice/fastify'
import type { FastifyRequest, RouteHandlerMethod } from 'fastify'
import { describe, expect, it, vi } from 'vitest'
import { inTurn } from '../support/in-turn.ts'
import { create, hello, limitedBy, statuses, two } from './fastify-app.ts'

/** Authentication by a hook of a route: who it finds is known only behind it. */
const users = new WeakMap<FastifyRequest, string>()
const authenticate = async (request: FastifyRequest) => {
  const { name } = request.query as { name?: string }
  if (name) users.set(request, name)
}
const key = user((request) => users.get(request))

describe('app.rateLimit', () => {
  it.each(['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const)(
    'limits behind the authentication of a route, as %s',
    async (hook) => {
      const app = await limitedBy({ global: false, ...two, key })
      app.get('/', { [hook]: [authenticate, app.rateLimit()] }, hello)
      app.get('/one', { [hook]: [authenticate, app.rateLimit({ limit: 1 })] }, hello)

      expect(await statuses(app, 3, '/?name=ada')).toEqual([200, 200, 429])
      expect(await statuses(app, 3, '/?name=bob')).toEqual([200, 200, 429])
      expect(await statuses(app, 2, '/one?name=ada')).toEqual([200, 429])
    },
  )

  it('counts each route separately, and once as a hook of the whole instance', async () => {
    const app = await limitedBy({ global: false })
    const limit = app.rateLimit(two)
    app.get('/a', { preHandler: limit }, hello)
    app.get('/b', { preHandler: limit }, hello)
    app.register(async (child) => {
      child.addHook('preHandler', child.rateLimit(two))
      child.get('/c', hello)
      child.get('/d', hello)
    })

    expect(await statuses(app, 3, '/a')).toEqual([200, 200, 429])
    expect(await statuses(app, 2, '/b')).toEqual([200, 200])
    expect(await statuses(app, 2, '/c')).toEqual([200, 200])
    expect(await statuses(app, 1, '/d')).toEqual([429])
  })

  it("does not replace the plugin's limit", async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const app = await limitedBy({ limit: 3, window: '1m' })
    const login = { ...two, name: 'pair-in-hook', key: all(key, ip()) }
    app.get('/login', { preHandler: [authenticate, app.rateLimit(login)] }, hello)

    const names = ['ada', 'bob', 'cy', 'dan']
    const asked = await inTurn(names, (name) => statuses(app, 1, `/login?name=${name}`))
    expect(asked.flat()).toEqual([200, 200, 200, 429])
    expect(warn).not.toHaveBeenCalled()
    warn.mockRestore()
  })

  it('limits only the not-found handler, in addition to the plugin', async () => {
    const app = await limitedBy({ limit: 9, window: '1m' })
    app.setNotFoundHandler({ preHandler: app.rateLimit({ limit: 2 }) }, (_request, reply) =>
      reply.code(404).send(),
    )
    app.get('/', hello)

    expect(await statuses(app, 2, '/x')).toEqual([404, 404])
    expect(await statuses(app, 1, '/y', 'POST')).toEqual([429])
    expect(await statuses(app, 1)).toEqual([200])
  })

  it('refers to a policy of the nearest plugin, and reports mistakes', async () => {
    const app = await limitedBy({ ...two, global: false })
    const profiles = { dear: { limit: 1, window: '1m' } } as const
    app.register(async (child) => {
      await child.register(rateLimitPlugin, { global: false, profiles })
      child.get('/', { preHandler: child.rateLimit('dear') }, hello)
    })

    expect(await statuses(app, 2)).toEqual([200, 429])
    expect(() => app.rateLimit('dear')).toThrow(/^app.rateLimit: policies\[0\] names 'dear'/)
    expect(() => app.rateLimit({ limit: -1 })).toThrow(/^app.rateLimit: limit must be/)
  })

  it('removes its headers from redirects with hideOnRedirect', async () => {
    const app = await limitedBy({ global: false, ...two })
    const preHandler = app.rateLimit({ hideOnRedirect: true })
    const redirect: RouteHandlerMethod = async (_request, reply) => reply.redirect('/there')
    app.get('/', { preHandler }, redirect)
    app.setNotFoundHandler({ preHandler }, redirect)

    expect((await app.inject('/')).headers).not.toHaveProperty('ratelimit')
    expect((await app.inject('/nowhere')).headers).not.toHaveProperty('ratelimit')
  })

  it("shares the plugin's penalty, without a duplicate limiter warning", async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const app = create()
    const penalty = { after: 2, within: '1m', for: '5m' } as const
    await app.register(rateLimitPlugin, { limit: 9, window: '1m', penalty })
    app.get('/', { preHandler: app.rateLimit({ limit: 1, window: '1m' }) }, hello)
    app.get('/other', hello)

    expect(await statuses(app, 2)).toEqual([200, 429])
    expect(await statuses(app, 1, '/other')).toEqual([200])
    expect(await statuses(app, 1)).toEqual([429])
    expect(await statuses(app, 1, '/other')).toEqual([429])
    expect(warn).not.toHaveBeenCalled()
    warn.mockRestore()
  })
})

describe("the hooks of a route and the plugin's", () => {
  it.each(['preParsing', 'preValidation', 'preHandler'] as const)(
    'the plugin comes behind those of the instance and of a route as %s, once',
    async (hook) => {
      const app = await limitedBy({ ...two, hook, key })
      app.addHook(hook as 'preHandler', async (request) => {
        const { team } = request.query as { team?: string }
        if (team) users.set(request, team)
      })
      app.get('/', { [hook]: [authenticate] }, hello)
      app.get('/own', { [hook]: authenticate, config: { rateLimit: { limit: 1 } } }, hello)
      app.get('/off', { [hook]: authenticate, config: { rateLimit: false } }, hello)
      app.get('/plain', hello)

      expect(await statuses(app, 3, '/?name=ada')).toEqual([200, 200, 429])
      expect(await statuses(app, 3, '/?name=bob')).toEqual([200, 200, 429])
      expect(await statuses(app, 2, '/own?name=bob')).toEqual([200, 429])
      expect(await statuses(app, 3, '/off?name=bob')).toEqual([200, 200, 200])
      expect(await statuses(app, 3, '/plain')).toEqual([200, 200, 429])
      expect(await statuses(app, 3, '/plain?team=red')).toEqual([200, 200, 429])
      expect(await statuses(app, 3, '/plain?team=blue')).toEqual([200, 200, 429])
      expect(await statuses(app, 1, '/?team=blue')).toEqual([429])
    },
  )

  it('the plugin comes first as onRequest, so that attempts to authenticate are limited', async () => {
    const app = create()
    const onRequest = vi.fn(async () => undefined)
    await app.register(rateLimitPlugin, two)
    app.get('/', { onRequest }, hello)

    expect(await statuses(app, 3)).toEqual([200, 200, 429])
    expect(onRequest).toHaveBeenCalledTimes(2)
  })

  it('HEAD counts as the GET beside it, behind the same hooks', async () => {
    const app = await limitedBy({ ...two, hook: 'preHandler', key })
    app.get('/', { preHandler: [authenticate] }, hello)
    expect(await statuses(app, 1, '/?name=ada', 'HEAD')).toEqual([200])
    expect(await statuses(app, 2, '/?name=ada')).toEqual([200, 429])
  })
})

describe('a handler of refusals', () => {
  interface Reply {
    readonly statusCode: number
    redirect(url: string): unknown
    send(body: unknown): unknown
  }
  type Handler = (request: never, reply: Reply, decision: Decision) => unknown
  async function refusedBy(handler: Handler) {
    const app = await limitedBy({ limit: 0, window: '1m', handler: handler as never })
    return app.inject('/')
  }
  const throwing = (thrown: unknown) => () => {
    throw thrown
  }
  const body = { error: 'mine', wait: 5 }
  const own = { statusCode: 420, error: 'mine' }
  const teapot = Object.assign(new Error('mine'), { statusCode: 418 })

  it('may redirect', async () => {
    const answer = await refusedBy((_request, reply) => reply.redirect('/slow-down'))
    expect([answer.statusCode, answer.headers.location]).toEqual([302, '/slow-down'])
  })

  it.each<[string, Handler, number, object]>([
    ['returns the body', async (_, _reply, { outcomes }) => [outcomes.length], 429, [1]],
    ['replies with the status', (_, reply) => reply.send([reply.statusCode]), 429, [429]],
    ['throws a plain object, which is the body', throwing(body), 429, body],
    ['rejects with a plain object', async () => throwing(body)(), 429, body],
    ['throws a plain object with a status of its own', throwing(own), 420, own],
    ['throws an error with a status of its own', throwing(teapot), 418, { message: 'mine' }],
    ['throws another error', throwing(new TypeError('a bug')), 500, { message: 'a bug' }],
  ])('%s', async (_, handler, status, sent) => {
    const answer = await refusedBy(handler)
    expect(answer.statusCode).toBe(status)
    expect(answer.json()).toMatchObject(sent)
  })
})
