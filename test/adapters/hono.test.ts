import { memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/hono'
import { nodeRouter } from '@sluice/http/adapter'
import { type Context, Hono } from 'hono'
import { describe, expect, it, vi } from 'vitest'
import { inTurn } from '../support/in-turn.ts'
import { counted, inFlight } from './counted.ts'

const one = { limit: 1, window: '1m', headers: ['draft-11'] } as const
const address = { incoming: { socket: { remoteAddress: '203.0.113.9' } } }

const ask = async (app: Hono, path = '/', init: RequestInit = {}, env: object = address) =>
  app.request(path, init, env)

const statuses = (app: Hono, ...paths: string[]) =>
  inTurn(paths, async (path) => (await ask(app, path)).status)

describe('a limiter of Hono', () => {
  it('shows its decision as a variable', async () => {
    const shows = (c: Context) => c.json({ allowed: c.get('rateLimit')?.allowed })
    const app = new Hono().get('/', rateLimit(one), shows)
    app.get('/skipped', rateLimit({ ...one, skip: () => true }), shows)
    expect(await (await ask(app)).json()).toEqual({ allowed: true })
    expect(await (await ask(app, '/skipped')).json()).toEqual({})
  })

  it('explains how to configure proxies, and what routes need', () => {
    const proxied: object = { ...one, trustProxy: true }
    const hint = "there is no option 'trustProxy' (did you mean 'addressOf'?)"
    expect(() => Reflect.apply(rateLimit, undefined, [proxied])).toThrow(hint)
    const routes = { '/login': one }
    expect(() => rateLimit({ ...one, routes })).toThrow('pass router: nodeRouter')
    expect(() => rateLimit({ ...one, routes, router: nodeRouter })).not.toThrow()
  })

  it('knows the route pattern, even from outer middleware and in nested apps', async () => {
    const onDecision = vi.fn()
    const inner = new Hono().get('/items/:id', (c) => c.text(c.req.param('id')))
    const app = new Hono().use(rateLimit({ ...one, observers: { onDecision } }))
    await statuses(app.route('/shop', inner), '/shop/items/1', '/shop/items/2', '/nowhere')

    const routes = onDecision.mock.calls.map(([event]) => event.route)
    expect(routes).toEqual(['GET /shop/items/:id', 'GET /shop/items/:id', undefined])
  })

  it('counts each route separately, with one store', async () => {
    const store = memoryStore()
    const app = new Hono()
    const hello = () => new Response('hello')
    app.get('/a/:id', rateLimit({ ...one, store }), hello)
    app.on(['GET', 'POST'], '/b', rateLimit({ ...one, store }), hello)
    app.use('/c/*', rateLimit({ ...one, store }))
    app.all('/c/*', hello)
    const inner = new Hono().get('/d', rateLimit({ ...one, store }), hello)
    inner.onError((error, c) => c.text(error.message, 500))
    app.route('/inner', inner)

    const paths = ['/a/1', '/a/2', '/b', '/b', '/c/1', '/c/2', '/inner/d', '/inner/d']
    const each = [200, 429]
    expect(await statuses(app, ...paths)).toEqual([...each, ...each, ...each, ...each])
  })

  it('adds its headers to a response with immutable headers, and without a route', async () => {
    const app = new Hono().use(rateLimit({ ...one, limit: 2 }))
    app.get('/', () => Response.redirect('http://a/', 302))
    expect((await ask(app)).headers.get('ratelimit')).toBe('"default";r=1;t=60')
    expect((await ask(app, '/nowhere')).headers.get('ratelimit')).toBe('"default";r=0;t=60')
  })

  it("handler: 'throw' lets Hono answer", async () => {
    const app = new Hono().use(rateLimit({ ...one, limit: 0, handler: 'throw' }))
    const refused = await ask(app)
    expect([refused.status, refused.headers.get('ratelimit')]).toEqual([429, '"default";r=0'])
  })

  it.each<[string, object]>([
    ['@hono/node-server', address],
    ['@hono/node-server, beside other bindings', { server: address }],
    ['Deno', { remoteAddr: { hostname: '203.0.113.9' } }],
  ])('finds the address of a connection by %s', async (_, env) => {
    const onDecision = vi.fn()
    await ask(new Hono().use(rateLimit({ ...one, observers: { onDecision } })), '/', {}, env)
    expect(onDecision.mock.calls).toMatchObject([[{ key: '@ip/203.0.113.9' }]])
  })

  it('has no key without an address, and explains how to provide one', async () => {
    const app = new Hono().use(rateLimit(one))
    const failed = vi.fn()
    app.onError((error, c) => {
      failed(error)
      return c.text('error', 500)
    })
    expect((await ask(app, '/', { headers: { 'x-real-ip': '192.0.2.1' } }, {})).status).toBe(500)
    expect(failed.mock.calls[0]?.[0]).toMatchObject({
      code: 'SLUICE_KEY_MISSING',
      message: expect.stringMatching(/app\.request\('\/', \{\}, \{ incoming: \{ socket: /),
    })
  })

  it('holds a lease until the body ends, and makes the runtime wait', async () => {
    const { options, used } = counted(inFlight)
    const app = new Hono().use(rateLimit(options))
    app.get('/', (c) => {
      c.header('x-mine', '1')
      return c.text('hello')
    })
    const waitUntil = vi.fn<(work: Promise<unknown>) => void>()
    const context = { waitUntil, passThroughOnException: vi.fn(), props: {} }
    const response = await app.request('/', {}, address, context)

    expect([await used(), waitUntil.mock.calls.length]).toEqual([1, 1])
    expect([await response.text(), response.headers.get('x-mine')]).toEqual(['hello', '1'])
    await waitUntil.mock.calls[0]?.[0]
    expect(await used()).toBe(0)
  })
})
