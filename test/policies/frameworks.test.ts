import { createServer } from 'node:http'
import rateLimitPlugin from '@sluice/fastify'
import { rateLimit } from '@sluice/koa'
import Fastify, { type FastifyInstance } from 'fastify'
import Koa from 'koa'
import request from 'supertest'
import { describe, expect, it, onTestFinished } from 'vitest'
import { burst, note, openInTest, pollOften } from './live-policies.ts'

pollOften()

const login = (limit: number) =>
  `${burst(100)}\nprofiles: { login: { limit: ${limit}, window: 1h } }`

describe('policies that change, in Fastify', () => {
  async function fastifyOf(text: string, routes: (app: FastifyInstance) => void) {
    const opened = await openInTest(text)
    const { policies, store } = opened
    const app = Fastify()
    onTestFinished(() => app.close())
    await app.register(rateLimitPlugin, { policies, store })
    routes(app)
    const ask = (url: string) => app.inject(url)
    const statuses = async (...urls: string[]) => {
      const found: number[] = []
      for (const url of urls) found.push((await ask(url)).statusCode)
      return found
    }
    return { ...opened, ask, statuses }
  }

  it('looks up the names of routes and hooks in the current version', async () => {
    const { policies, statuses, change, spoil } = await fastifyOf(login(1), (app) => {
      app.get('/login', { config: { rateLimit: 'login' } }, async () => 'ok')
      app.get('/hook', { preHandler: app.rateLimit('login') }, async () => 'ok')
    })
    expect(await statuses('/login', '/login', '/hook')).toEqual([200, 429, 429])
    await change(login(3))
    expect(await statuses('/login', '/hook', '/hook', '/login')).toEqual([200, 200, 429, 429])
    await policies.set({ policy: 'login', field: 'limit', value: 4 }, note)
    expect(await statuses('/login', '/login')).toEqual([200, 429])
    const { version } = policies
    await spoil(burst(100))
    expect(policies.version).toBe(version)
    expect((await policies.status()).refused?.message).toContain("'login'")
    expect(await statuses('/login')).toEqual([429])
  })

  it('keeps the counts of policies in code while the file changes', async () => {
    const own = { limit: 2, window: '1h' } as const
    const { statuses, change } = await fastifyOf(burst(100), (app) => {
      app.get('/route', { config: { rateLimit: own } }, async () => 'ok')
      app.get('/hook', { preHandler: app.rateLimit(own) }, async () => 'ok')
    })
    expect(await statuses('/route', '/hook')).toEqual([200, 200])
    await change(burst(99))
    expect(await statuses('/route', '/route', '/hook', '/hook')).toEqual([200, 429, 200, 429])
  })

  it('removes headers from redirects as soon as the file says so', async () => {
    const { ask, change } = await fastifyOf(burst(100), (app) => {
      app.get('/moved', async (_request, reply) => reply.redirect('/'))
    })
    const header = async () => (await ask('/moved')).headers.ratelimit
    expect(await header()).toContain('burst')
    await change(`${burst(100)}\nhideOnRedirect: true`)
    expect(await header()).toBeUndefined()
    await change(burst(100))
    expect(await header()).toContain('burst')
  })

  it('enforces nothing in shadow, nor a code policy whose function declines', async () => {
    const { policies, statuses } = await fastifyOf(burst(100), (app) => {
      const rateLimit = { limit: 0, window: '1h', enforce: () => true } as const
      app.get('/code', { config: { rateLimit } }, async () => 'ok')
    })
    expect(await statuses('/code')).toEqual([429])
    await policies.kill('shadow', note)
    expect(await statuses('/code')).toEqual([200])
    await policies.kill('off', note)
    expect(await statuses('/code')).toEqual([200])
    await policies.kill('none', note)
    expect(await statuses('/code')).toEqual([429])
  })
})

describe('policies that change, in Koa', () => {
  it('decides by the current version and its settings', async () => {
    const { policies, store, change } = await openInTest(burst(1))
    const app = new Koa()
    app.use(rateLimit({ policies, store }))
    app.use((context) => context.redirect('/elsewhere'))
    const server = createServer(app.callback())
    const ask = () => request(server).get('/')
    expect([(await ask()).status, (await ask()).status]).toEqual([302, 429])
    await change(`${burst(4)}\nhideOnRedirect: true\nstatusCode: 503`)
    const moved = await ask()
    expect([moved.status, moved.get('ratelimit')]).toEqual([302, undefined])
    await policies.set({ policy: 'burst', field: 'limit', value: 2 }, note)
    expect((await ask()).status).toBe(503)
    await policies.kill('off', note)
    expect((await ask()).status).toBe(302)
  })
})
