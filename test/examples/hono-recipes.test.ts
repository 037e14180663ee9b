import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { expectLimited, expectNotLimited } from '@sluice/testing'
import type { Hono } from 'hono'
import { describe, expect, it, vi } from 'vitest'
import { portOf } from '../adapters/drivers/driver.ts'
import { pageModules, tryModules } from './page-modules.ts'

const recipes = pageModules('docs/hono.md')
const { tried, load } = tryModules(recipes)

function recipe(heading: string): Promise<{ app?: Hono; default?: Hono }> {
  return load(heading)
}

/** Asks the app of a recipe behind a real server of Node. */
async function serving(heading: string) {
  const { app } = await recipe(heading)
  if (!app) throw new Error('the recipe exports no app')
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server
  const port = await portOf(server.listen(0, '127.0.0.1'))
  return (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init)
}

const statusOf = async (asked: Promise<Response>) => (await asked).status

describe('the recipes for Hono', () => {
  it('limit all routes, and one more tightly', async () => {
    const ask = await serving('A limit for all routes, and one for a route')
    for (let i = 0; i < 5; i += 1) await expectNotLimited(await ask('/search'))
    await expectLimited(await ask('/search'), { policy: 'search', retryAfter: 10 })
    await expectNotLimited(await ask('/quota'), { policy: 'api', remaining: 93 })
    expect(await (await ask('/quota')).json()).toMatchObject({ left: 92, resetMs: 60_000 })
    expect((await ask('/health')).headers.has('ratelimit')).toBe(false)
  })

  it('count failed logins', async () => {
    const ask = await serving('Logins by account and address')
    const post = (body: string) => statusOf(ask('/login', { method: 'POST', body }))
    const login = (name: unknown, password: string) => post(JSON.stringify({ name, password }))
    for (let i = 0; i < 10; i += 1) {
      expect(await login('ada', 'correct horse battery staple')).toBe(200)
    }
    const wrong = await Promise.all(Array.from({ length: 20 }, () => login(' Ada', 'x')))
    expect(wrong.filter((status) => status === 401)).toHaveLength(5)
    expect(wrong.filter((status) => status === 429)).toHaveLength(15)
    expect(await login('bob', 'x')).toBe(401)
    expect(await login(5, 'x')).toBe(401)
    expect(await post('{')).toBe(401)
  })

  it('give each plan its limit', async () => {
    const ask = await serving('Account plans')
    const limitOf = async (key: string) =>
      (await ask('/items', { headers: { 'x-api-key': key } })).headers.get('ratelimit-policy')
    expect(await limitOf('key-of-ada')).toBe('"address";q=5000;w=60, "plan";q=100;w=60')
    expect(await limitOf('key-of-bob')).toBe('"address";q=5000;w=60, "plan";q=10000;w=60')
    expect(await limitOf('made up')).toBe('"address";q=5000;w=60, "plan";q=60;w=60')
  })

  it('limit apps within apps', async () => {
    const ask = await serving('Apps within apps')
    for (let i = 0; i < 50; i += 1) expect((await ask('/v1/items')).status).toBe(200)
    await expectLimited(await ask('/v1/items'))
    await expectNotLimited(await ask('/v2/items'), { remaining: 49 })
    const write = (version: string) => ask(`/${version}/items`, { method: 'POST' })
    for (let i = 0; i < 10; i += 1) expect((await write('v2')).status).toBe(201)
    await expectLimited(await write('v2'), { policy: 'writes' })
    vi.setSystemTime(Date.now() + 59_999)
    await expectLimited(await write('v2'), { policy: 'writes', retryAfter: 1 })
  })

  it('believe the last entry of a proxy alone', async () => {
    const ask = await serving('A proxy in front of Node')
    const from = (forwarded: string) => ask('/', { headers: { 'x-forwarded-for': forwarded } })
    for (let i = 0; i < 20; i += 1) await expectNotLimited(await from(`10.0.0.${i}, 203.0.113.9`))
    await expectLimited(await from('10.9.9.9, 203.0.113.9'), { retryAfter: 1 })
    await expectNotLimited(await from('203.0.113.9, 203.0.113.10'))
    await expectNotLimited(await ask('/'))
  })

  it.each<[string, (address: string) => [RequestInit, object]]>([
    ['Cloudflare Workers', (address) => [{ headers: { 'cf-connecting-ip': address } }, {}]],
    ['Deno', (address) => [{}, { remoteAddr: { transport: 'tcp', hostname: address, port: 1 } }]],
    ['Bun', (address) => [{}, { requestIP: () => ({ address, family: 'IPv4', port: 1 }) }]],
  ])('find the address as the runtime tells it: %s', async (heading, asking) => {
    const { app, default: served = app } = await recipe(heading)
    const ask = async (address: string) => served?.request('/', ...asking(address))
    for (let i = 0; i < 100; i += 1) await ask('203.0.113.9')
    await expectLimited(await ask('203.0.113.9'), { retryAfter: 60 })
    await expectNotLimited(await ask('203.0.113.10'), { remaining: 99 })
  })

  it('are all of them tried', () => {
    expect([...tried].sort()).toEqual(recipes.map(({ heading }) => heading).sort())
  })
})
