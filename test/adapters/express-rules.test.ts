import { rateLimit } from '@sluice/express'
import express from 'express'
import express4 from 'express4'
import request from 'supertest'
import { describe, expect, it } from 'vitest'

const of = (limit: number) => ({ limit, window: '1m' }) as const

describe.each([
  ['Express 4', express4],
  ['Express 5', express],
])('routes in the options of rateLimit in %s', (_, framework) => {
  async function statuses(app: express.Express, ...paths: string[]): Promise<number[]> {
    const found: number[] = []
    for (const path of paths) found.push((await request(app).get(path)).status)
    return found
  }

  it('stand behind the path that the limiter is mounted at', async () => {
    const app = framework()
    app.use('/api', rateLimit({ routes: { '/login': of(1) } }))
    app.use((_req, res) => void res.end())

    expect(await statuses(app, '/api/login', '/api/login', '/login', '/login')).toEqual([
      200, 429, 200, 200,
    ])
  })

  it('stand behind the path of the router that they are written beside', async () => {
    const app = framework()
    const router = framework.Router()
    router.use(rateLimit({ routes: { 'GET /items/:id': of(1) } }))
    router.get('/items/:id', (_req, res) => void res.end())
    app.use('/shop/:name', router)

    expect(await statuses(app, '/shop/a/items/1', '/shop/b/items/2')).toEqual([200, 429])
  })

  it('match in any case and with any slashes, since a router might', async () => {
    const app = framework()
    app.enable('case sensitive routing')
    app.enable('strict routing')
    app.use(rateLimit({ routes: { '/login': of(1) } }))
    // A router does not inherit the settings of its application.
    app.use(framework.Router().get('/login', (_req, res) => void res.end('reached')))

    expect(await statuses(app, '/login', '/LOGIN', '/login/', '/Login/')).toEqual([
      200, 429, 429, 429,
    ])
  })

  it('leave limits at a route to be asked after them', async () => {
    const app = framework()
    app.use(rateLimit({ ...of(3), routes: { '/own': { ...of(9), name: 'rule' } } }))
    app.get('/own', rateLimit({ ...of(1), name: 'own' }), (_req, res) => void res.end())

    const answer = await request(app).get('/own')

    expect(answer.get('ratelimit')).toBe('"rule";r=8;t=60, "own";r=0;t=60')
  })
})
