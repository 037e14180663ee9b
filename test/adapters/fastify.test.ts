import { once } from 'node:events'
import { connect, constants } from 'node:http2'
import { text } from 'node:stream/consumers'
import { type RateLimitPluginOptions, type RequestDecision, rateLimitPlugin } from '@sluice/fastify'
import fastify from 'fastify'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../support/until.ts'
import { counted, inFlight } from './counted.ts'
import { create, hello, limitedBy, two } from './fastify-app.ts'

it("handler: 'throw' has the error handler of Fastify itself refuse", async () => {
  const app = await limitedBy({ limit: 0, window: '1m', handler: 'throw' })
  const answer = await app.inject('/')
  expect(answer.json()).toMatchObject({ statusCode: 429, code: 'SLUICE_REFUSED' })
})

describe('the life of a request', () => {
  it('sees the body, and the user that was authenticated, in preHandler', async () => {
    const cost: RateLimitPluginOptions['cost'] = ({ body }) => Object(body).items.length
    const app = await limitedBy({ limit: 10, window: '1m', hook: 'preHandler', cost })
    app.post('/', hello)
    const answer = await app.inject({ method: 'POST', url: '/', payload: { items: [1, 2, 3] } })
    expect(answer.headers['x-ratelimit-remaining']).toBe('7')
  })

  it('has the decision on the request, undefined where it was skipped', async () => {
    const app = await limitedBy({ ...two, skip: ({ url }) => url === '/free' })
    for (const url of ['/', '/free']) {
      app.get(url, async (request) => ({ allowed: request.rateLimit?.allowed }))
    }

    expect((await app.inject('/')).json()).toEqual({ allowed: true })
    expect((await app.inject('/free')).json()).toEqual({})
  })

  it("shows a refusal to onResponse and the application's hooks, not to a later onRequest", async () => {
    const app = create()
    const seen = vi.fn()
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('access-control-allow-origin', '*')
    })
    app.addHook('onSend', async () => seen('onSend'))
    await app.register(rateLimitPlugin, { limit: 0, window: '1m' })
    app.addHook('onRequest', async () => seen('onRequest'))
    app.addHook('onResponse', async ({ rateLimit }) => seen(rateLimit?.allowed, rateLimit?.key))
    const answer = await app.inject('/')

    expect(answer.headers['access-control-allow-origin']).toBe('*')
    expect(seen.mock.calls).toEqual([['onSend'], [false, '@ip/127.0.0.1']])
  })

  it.each<[RateLimitPluginOptions, RegExp]>([
    [{ ...two, hook: 'onSend' as never }, /hook must be one of 'onRequest'/],
    [{ ...two, global: 'yes' as never }, /global must be true or false/],
    [{ ...two, hooks: 1 } as never, /Plugin: there is no option 'hooks' \(did you mean 'hook'/],
  ])('does not begin with options %o', async (options, message) => {
    await expect(limitedBy(options)).rejects.toThrow(message)
  })
})

it('X-Forwarded-For gives one warning where everybody is trusted, if it has several addresses', async () => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  onTestFinished(() => warn.mockRestore())
  const ask = async (trustProxy: true | string, list: string) => {
    const app = fastify({ trustProxy })
    onTestFinished(() => app.close())
    await app.register(rateLimitPlugin, two)
    for (let i = 0; i < 2; i += 1) {
      await app.inject({ url: '/', headers: { 'x-forwarded-for': list } })
    }
  }
  await ask('127.0.0.1, 10.0.0.0/8', '192.0.2.7, 10.0.0.1')
  await ask(true, '198.51.100.1')
  expect(warn).not.toHaveBeenCalled()
  await ask(true, '192.0.2.7, 198.51.100.1')
  expect(warn).toHaveBeenCalledExactlyOnceWith(
    expect.stringMatching(/'trustProxy' is true, .* write fastify\(\{ trustProxy: '<addresses/),
  )
})

/** An application over HTTP/2, and what connects to it. */
function overHttp2() {
  const app = fastify({ http2: true })
  onTestFinished(() => app.close())
  const session = async () => {
    const opened = connect(await app.listen({ port: 0, host: '127.0.0.1' }))
    onTestFinished(() => opened.destroy())
    return opened
  }
  return { app, session }
}

it('H36: over HTTP/2 names are in lower case, values equal, and exactly the limit of 200 streams at once passes', async () => {
  const { app, session: open } = overHttp2()
  await app.register(rateLimitPlugin, { limit: 25, window: '1m' })
  app.get('/', hello)
  const session = await open()

  const get = async () => {
    const stream = session.request({ ':path': '/' })
    const [headers] = await once(stream, 'response')
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

describe('what is held for a stream of HTTP/2', () => {
  it('is released when the stream ends or is reset', async () => {
    const { app, session: open } = overHttp2()
    const { options, used } = counted(inFlight)
    await app.register(rateLimitPlugin, options)
    let answers = true
    const reached = vi.fn()
    app.get('/', (_request, reply) => {
      reached()
      if (answers) reply.send('hello')
    })
    const session = await open()
    const isFree = async () => (await used()) === 0

    await text(session.request({ ':path': '/' }))
    await until('the leases are settled', isFree)
    answers = false
    const stream = session.request({ ':path': '/' })
    stream.on('error', () => undefined)
    await until('the route is reached', () => reached.mock.calls.length === 2)
    expect(await isFree()).toBe(false)
    stream.close(constants.NGHTTP2_CANCEL)
    await until('the leases are settled', isFree)
  })

  it('is released when the session is lost', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { app, session: begin } = overHttp2()
    let open = 0
    app.addHook('onRequest', async (_request, reply) => {
      open += 1
      reply.raw.once('close', () => {
        open -= 1
      })
    })
    const reached = vi.fn()
    const onDecision = vi.fn()
    await app.register(rateLimitPlugin, {
      algorithm: 'leaky-bucket',
      limit: 1,
      window: 200,
      key: () => 'ada',
      observers: { onDecision },
    })
    app.get('/', async () => reached())
    const session = await begin()
    for (let i = 0; i < 3; i += 1) {
      session.request({ ':path': '/' }).on('error', () => undefined)
    }
    await until('it is decided', () => onDecision.mock.calls.length === 3)
    session.destroy()
    await until('the responses have ended', () => open === 0)
    await vi.advanceTimersByTimeAsync(500)

    expect(reached).toHaveBeenCalledTimes(1)
  })
})

it('settles a response over HTTP/2, and charges at once what is added after it', async () => {
  const { options, used } = counted({ name: 'h2', limit: 10, window: '1m' })
  const decisions: (RequestDecision | undefined)[] = []
  const { app, session: open } = overHttp2()
  const refundWhen: RateLimitPluginOptions['refundWhen'] = (_, { status }) => status === 404
  await app.register(rateLimitPlugin, { ...options, refundWhen })
  app.get('/', async (request) => {
    decisions.push(request.rateLimit)
    request.rateLimit?.charge(2)
    return 'hello'
  })
  const session = await open()
  const get = (path: string) => once(session.request({ ':path': path }).resume(), 'close')

  await get('/')
  await until('the units are settled', async () => (await used()) === 3)
  await get('/unknown')
  await until('the units are settled', async () => (await used()) === 3)
  decisions[0]?.charge(3)
  expect(await used()).toBe(6)
})
