import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type express from 'express'
import type { FastifyInstance } from 'fastify'
import request from 'supertest'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebSocket } from 'ws'
import { isProof } from '../support/scale.ts'
import { root } from '../support/workspace.ts'
import { pageModules, type WrittenModules, writeModules } from './page-modules.ts'

const recipes = pageModules('docs/recipes.md')
let written: WrittenModules

beforeAll(async () => {
  written = await writeModules(recipes)
  return () => written.remove()
})

beforeEach(() => {
  vi.resetModules()
  vi.useFakeTimers({ toFake: ['Date'], now: 1_795_195_800_250 })
  return () => vi.useRealTimers()
})

const tried = new Set<string>()

/** A recipe as it stands on the page, made anew. */
async function recipe<Exports>(heading: string): Promise<Exports> {
  tried.add(heading)
  return await import(/* @vite-ignore */ written.pathOf(heading))
}

const appOf = async (heading: string) => (await recipe<{ app: express.Express }>(heading)).app

describe('the recipes', () => {
  it('limit a public API by address', async () => {
    const app = await appOf('A public API by address')
    const from = (address: string, path = '/items') =>
      request(app).get(path).set('X-Forwarded-For', address)

    for (let i = 0; i < 20; i += 1) await from(`10.0.0.${i}, 203.0.113.9`).expect(200)
    const refused = await from('203.0.113.9').expect(429)

    expect(refused.get('retry-after')).toMatch(/^[12]$/)
    expect(refused.get('access-control-expose-headers')).toContain('Retry-After')
    await from('203.0.113.9', '/health').expect(200)
    await from('203.0.113.10').expect(200)
  })

  it('give each plan its limit', async () => {
    const app = await appOf('Plans by API key')
    const limitOf = async (key: string) => {
      const answer = await request(app).get('/items').set('x-api-key', key).expect(200)
      return answer.get('ratelimit-policy')
    }

    expect(await limitOf('key-of-ada')).toBe('"address";q=5000;w=60, "plan";q=100;w=60')
    expect(await limitOf('key-of-bob')).toBe('"address";q=5000;w=60, "plan";q=10000;w=60')
    expect(await limitOf('made up')).toBe('"address";q=5000;w=60, "plan";q=60;w=60')
  })

  it("share a tenant's quota between its routes", async () => {
    const { app } = await recipe<{ app: FastifyInstance }>("A tenant's share of each route")
    onTestFinished(() => app.close())
    const status = async (url: string, tenant?: string) => {
      const headers = tenant === undefined ? {} : { 'x-verified-tenant': tenant }
      return (await app.inject({ url, headers })).statusCode
    }

    for (let i = 0; i < 100; i += 1) expect(await status(`/orders/${i}`, 'acme')).toBe(200)
    expect(await status('/orders/100', 'acme')).toBe(429)
    expect(await status('/invoices/1', 'acme')).toBe(200)
    expect(await status('/orders/1', 'other')).toBe(200)
    expect(await status('/orders/1')).toBe(429)
  })

  it('count failed logins', async () => {
    const app = await appOf('Logging in')
    const login = (name: string, password: string) =>
      request(app).post('/login').send({ name, password })

    for (let i = 0; i < 20; i += 1) {
      await login('ada', 'correct horse battery staple').expect(200)
    }
    const wrong = await Promise.all(Array.from({ length: 30 }, () => login('Ada ', 'x')))
    const statuses = wrong.map(({ status }) => status)

    expect(statuses.filter((status) => status === 401)).toHaveLength(5)
    expect(statuses.filter((status) => status === 429)).toHaveLength(25)
    expect(wrong.some((answer) => answer.get('ratelimit'))).toBe(false)
    await login('bob', 'x').expect(401)
  })

  it('stay below the quota of a vendor', async () => {
    const app = await appOf('The quota of a vendor')
    for (let i = 0; i < 90; i += 1) await request(app).get('/rates').expect(200)

    await request(app).get('/rates').expect(503).expect('Retry-After', '1')
  })

  it('count expensive endpoints for more', async () => {
    const app = await appOf('Expensive endpoints')
    const left = async (path: string) => {
      const answer = await request(app).get(path).expect(200)
      return /"units";r=(\d+)/.exec(answer.get('ratelimit') ?? '')?.[1]
    }

    expect(await left('/items')).toBe('999')
    expect(await left('/search/x')).toBe('989')
    expect(await left('/report?days=30')).toBe('959')
    expect(await left('/report?days=0')).toBe('594')
    expect((await request(app).get('/report?days=1')).get('ratelimit')).toContain('"reports";r=1')
  })

  it('count GraphQL queries by what they ask for', async () => {
    const app = await appOf('GraphQL by complexity')
    const left = async (query: string) => {
      const answer = await request(app).post('/graphql').send({ query })
      return /r=(\d+)/.exec(answer.get('ratelimit') ?? '')?.[1]
    }

    expect(await left('{ me { id name } }')).toBe('997')
    expect(await left('{ users { name posts { title } } }')).toBe(String(997 - 1 - 20 - 100))
    expect(await left('}')).toBe('875')
    const deep = await request(app)
      .post('/graphql')
      .send({ query: '{ users { posts { users { id } } } }' })
    expect(deep.status).toBe(429)
  })

  it('count uploads by what really came', async () => {
    const app = await appOf('Uploads by bytes')
    const put = (bytes: number) => request(app).put('/files/a').send(Buffer.alloc(bytes))
    await put(4_000_000).expect(201)
    const chunked = request(app).put('/files/b').set('Transfer-Encoding', 'chunked')
    chunked.write(Buffer.alloc(3_000_000))
    await chunked.expect(201, { received: 3_000_000 })

    await put(4_000_000).expect(429)
    await put(2_900_000).expect(201)
  })

  it('count messages of WebSockets', async () => {
    const { server } = await recipe<{ server: import('node:http').Server }>('WebSocket messages')
    await once(server.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void server.close())
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
    const socket = new WebSocket(url)
    const got: string[] = []
    socket.on('message', (data) => void got.push(String(data)))
    await once(socket, 'open')
    for (let i = 0; i < 40; i += 1) socket.send(String(i))
    const [code] = await once(socket, 'close')

    expect(code).toBe(1008)
    expect(got.filter((text) => text.startsWith('got'))).toHaveLength(20)
    expect(got.filter((text) => text === 'wait 200 ms')).toHaveLength(10)
    const refusals: unknown[] = []
    for (let i = 0; i < 11; i += 1) {
      const again = new WebSocket(url)
      await once(again, 'open').catch((error) => refusals.push(String(error)))
      again.terminate()
    }
    expect(refusals).toEqual(Array(2).fill('Error: Unexpected server response: 429'))
  })

  it('limit fetch-style handlers', async () => {
    const { handler } = await recipe<{ handler(request: Request): Promise<Response> }>(
      'Fetch-style and serverless handlers',
    )
    const ask = (key: string) =>
      handler(new Request('http://localhost/', { headers: { 'x-api-key': key } }))

    for (let i = 0; i < 99; i += 1) await ask('a')
    expect((await ask('a')).headers.get('ratelimit')).toBe('"api";r=0;t=60')
    const refused = await ask('a')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
    expect((await ask('b')).status).toBe(200)
  })

  it('roll out a limit in shadow, then for some, always the same', async () => {
    const heading = 'Rolling out a limit'
    type Exports = { app: express.Express; wouldRefuse: Map<string, number> }
    const { app, wouldRefuse } = await recipe<Exports>(heading)
    const ask = (subject: express.Express, key: string) =>
      request(subject).get('/items').set('x-api-key', key)
    for (let i = 0; i < 12; i += 1) await ask(app, 'a').expect(200)

    expect(wouldRefuse).toEqual(new Map([['new', 2]]))
    expect((await ask(app, 'a')).get('ratelimit-policy')).toBe('"old";q=100;w=60')
    vi.resetModules()
    vi.stubEnv('STAGE', 'canary')
    onTestFinished(() => void vi.unstubAllEnvs())
    const canary = await recipe<Exports>(heading)
    const enforced: string[] = []
    for (let i = 0; i < 60; i += 1) {
      const policies = (await ask(canary.app, `key-${i}`)).get('ratelimit-policy')
      if (policies?.includes('new')) enforced.push(`key-${i}`)
    }
    expect(enforced.length).toBeGreaterThan(0)
    expect(enforced.length).toBeLessThan(20)
    for (const key of enforced) {
      expect((await ask(canary.app, key)).get('ratelimit-policy')).toContain('new')
    }
  })

  it('are all of them tried', () => {
    expect([...tried].sort()).toEqual(recipes.map(({ heading }) => heading).sort())
  })

  it.runIf(isProof)('have no mistake in their types', { timeout: 90_000 }, async () => {
    const config = {
      extends: '../../tsconfig.json',
      compilerOptions: { noEmit: true, composite: false, incremental: false, noUnusedLocals: true },
      include: ['*.ts'],
    }
    await writeFile(join(written.folder, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(root, 'node_modules/.bin/tsc')
    const checked = promisify(execFile)(tsc, ['-p', written.folder])

    await expect(checked).resolves.toMatchObject({ stdout: '' })
  })
})

afterAll(() => vi.resetModules())
