import { firstOf, header, type RateLimitOptions, rateLimit } from '@sluice/express'
import express, { type ErrorRequestHandler, type Request, type Response } from 'express'
import express4 from 'express4'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { inTurn } from '../support/in-turn.ts'
import { ask, type Question } from './ask.ts'
import { portOf } from './drivers/driver.ts'

const one: RateLimitOptions = { limit: 1, window: '1m' }

describe.each([
  ['Express 4', express4],
  ['Express 5', express],
])('rateLimit in %s', (_, framework) => {
  it('calls next synchronously if nothing is async', () => {
    const next = vi.fn<() => void>()
    const limit = rateLimit({ limit: 2, window: '1m', key: () => 'ada' })
    const request = { method: 'GET', get: () => undefined } as unknown as Request
    const nothing = { headersSent: true, getHeaderNames: () => [], getHeader: () => undefined }
    limit(request, nothing as unknown as Response, next)

    expect(next).toHaveBeenCalledExactlyOnceWith()
    expect(request.rateLimit?.remaining).toBe(1)
  })

  it('has a name in stack traces', () => {
    expect(rateLimit(one).name).toBe('sluiceRateLimit')
  })

  it('leaves the decision on the request, and the limiter on the middleware', async () => {
    const app = framework()
    const limit = rateLimit({ ...one, key: () => 'ada' })
    app.use(limit)
    app.get('/', async (req, res) => {
      res.json({ allowed: req.rateLimit?.allowed, refunded: await refund(req) })
    })
    const refund = ({ rateLimit: decision }: Request) =>
      decision === undefined ? false : limit.limiter.refund(decision)
    const get = await serve(app)

    expect((await get()).body).toBe('{"allowed":true,"refunded":true}')
    expect((await get()).status).toBe(200)
    await limit.limiter.consume('ada')
    expect((await get()).status).toBe(429)
    await limit.limiter.reset('ada')
    expect((await get()).status).toBe(200)
  })

  it('counts one middleware separately per route, but not per method', async () => {
    const app = framework()
    const limit = rateLimit({ ...one, limit: 2 })
    const ok = (_req: Request, res: Response) => void res.send('ok')
    app.get('/a/:id', limit, ok)
    app.post('/a/:id', limit, ok)
    app.all('/all', limit, ok)
    app.route('/route').all(limit).get(ok).put(ok)
    const get = await serve(app)
    const statuses = (path: string, ...methods: string[]) =>
      inTurn(methods, async (method) => (await get(path, { method })).status)

    expect(await statuses('/a/1', 'GET', 'HEAD', 'GET')).toEqual([200, 200, 429])
    expect(await statuses('/a/2', 'GET', 'POST', 'POST', 'POST')).toEqual([429, 200, 200, 429])
    expect(await statuses('/all', 'GET', 'POST', 'DELETE')).toEqual([200, 200, 429])
    expect(await statuses('/route', 'GET', 'PUT', 'GET')).toEqual([200, 200, 429])
  })

  it('is not split by a route that called next, nor by the path of a router', async () => {
    const app = framework()
    const limit = rateLimit({ ...one, limit: 2 })
    const router = framework.Router()
    router.use(limit)
    router.get('/x', (_req, res) => void res.send('ok'))
    app.get('/:first/x', (_req, _res, next) => next())
    app.use('/:tenant', router)
    const get = await serve(app)

    expect((await get('/a/x')).status).toBe(200)
    expect((await get('/b/x')).status).toBe(200)
    expect((await get('/c/x')).status).toBe(429)
    expect((await get('/d/x', { method: 'POST' })).status).toBe(429)
  })

  it("handler: 'throw' has the error handling of Express itself refuse", async () => {
    vi.spyOn(console, 'error').mockReturnValue()
    const app = framework()
    app.use('/own', rateLimit({ ...one, limit: 0, handler: 'throw' }))
    app.use(rateLimit({ ...one, block: { ips: ['127.0.0.1'] }, handler: 'throw' }))
    const get = await serve(app)

    expect([(await get('/own')).status, (await get('/none')).status]).toEqual([429, 403])
  })

  it('gives a handler everything that middleware gets', async () => {
    const app = framework()
    app.use(rateLimit({ ...one, limit: 0, handler: (_req, _res, next) => next(new Error('mine')) }))
    app.use(
      ((error, _req, res, _next) => void res.send(error.message)) satisfies ErrorRequestHandler,
    )
    const answer = await (await serve(app))()
    expect([answer.status, answer.body]).toEqual([429, 'mine'])
  })

  it('sets the decision under the configured name', async () => {
    const app = framework()
    app.use(rateLimit({ ...one, requestPropertyName: 'apiLimit', routes: { '/r': { limit: 5 } } }))
    app.use((req, res) => void res.json([Reflect.get(req, 'apiLimit').allowed, req.rateLimit]))
    const get = await serve(app)

    expect((await get('/')).body).toBe('[true,null]')
    expect((await get('/r')).body).toBe('[true,null]')
  })

  it('reports all policies of a request, whatever its decisions are called', async () => {
    const app = framework()
    app.use(rateLimit({ name: 'a', limit: 9, window: '1m', requestPropertyName: 'first' }))
    app.use(rateLimit({ name: 'b', limit: 8, window: '1m' }))
    app.use(rateLimit({ name: 'c', limit: 7, window: '1m', requestPropertyName: 'third' }))
    app.use((req, res) => {
      res.json(Object.keys(req).filter((name) => /first|third|rateLimit/.test(name)))
    })
    const answer = await (await serve(app))()

    const policies = '"a";q=9;w=60, "b";q=8;w=60, "c";q=7;w=60'
    expect(answer.field('ratelimit-policy')).toBe(policies)
    expect(answer.field('ratelimit')).toBe('"a";r=8;t=60, "b";r=7;t=60, "c";r=6;t=60')
    expect(answer.field('x-ratelimit-limit')).toBe('7')
    expect(answer.body).toBe('["first","rateLimit","third"]')
  })

  it('reads both spellings of one header', async () => {
    const app = framework()
    const key = firstOf(header('referrer'), () => 'nobody')
    app.use(rateLimit({ ...one, key }), (req, res) => void res.json(req.rateLimit?.key))
    const get = await serve(app)
    expect((await get('/', { headers: { referer: 'a' } })).body).toBe('"@header/referrer/a"')
  })

  it("routes in its options are relative to the router's mount path", async () => {
    const app = framework()
    const router = framework.Router()
    router.use(rateLimit({ routes: { 'GET /items/:id': one } }))
    router.get('/items/:id', (_req, res) => void res.end())
    app.use('/shop/:name', router)

    const get = await serve(app)
    expect((await get('/shop/a/items/1')).status).toBe(200)
    expect((await get('/shop/b/items/2')).status).toBe(429)
  })

  it('routes in its options do not disable later limits on a route', async () => {
    const app = framework()
    app.use(rateLimit({ ...one, limit: 3, routes: { '/own': { ...one, limit: 9, name: 'rule' } } }))
    app.get('/own', rateLimit({ ...one, name: 'own' }), (_req, res) => void res.end())

    const answer = await (await serve(app))('/own')

    expect(answer.field('ratelimit')).toBe('"rule";r=8;t=60, "own";r=0;t=60')
  })
})

describe('rateLimit', () => {
  it('warns once that every proxy is trusted, if the list has several addresses', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    const apps = [true, 2].map((trust) =>
      express()
        .set('trust proxy', trust)
        .use(rateLimit({ ...one, limit: 10 })),
    )
    const [trusting, counting] = await Promise.all(apps.map((app) => serve(app)))
    const list = { headers: { 'x-forwarded-for': '192.0.2.7, 198.51.100.1' } }
    await counting?.('/', list)
    await trusting?.('/', { headers: { 'x-forwarded-for': '198.51.100.1' } })
    expect(warn).not.toHaveBeenCalled()
    await trusting?.('/', list)
    await trusting?.('/', list)
    expect(warn).toHaveBeenCalledExactlyOnceWith(
      expect.stringMatching(/'trust proxy' is true, .* call app\.set\('trust proxy', <number/),
    )
  })

  it.each(['', 'url', 'headers', 'socket', 'params', 'constructor', '__proto__', 5, null])(
    'requestPropertyName: %j is refused',
    (name) => {
      expect(() => rateLimit({ ...one, requestPropertyName: name as string })).toThrow(
        /^requestPropertyName must be a name that Express requests do not have, such as/,
      )
    },
  )
})

async function serve(app: express.Express) {
  const port = await portOf(app.listen(0, '127.0.0.1'))
  return (path?: string, question?: Question) => ask(port, path, question)
}
