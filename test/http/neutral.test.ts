import { runInNewContext } from 'node:vm'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { redisHttpFront } from '../support/redis-http-front.ts'
import { startRedis } from '../support/redis-server.ts'

/** The globals of a runtime for fetch handlers, as far as they use them. */
const ofFetch = {
  ...{ console, performance, setTimeout, clearTimeout, setInterval, clearInterval },
  ...{ Request, Response, Headers, ReadableStream, TextEncoder, URL, URLSearchParams },
}
/** Those that a client of Redis over HTTP uses beside them, and the store. */
const ofHttp = { fetch, AbortController, TextDecoder, btoa, crypto, queueMicrotask }

async function run(script: string, more: object = {}): Promise<unknown> {
  const { outputFiles } = await build({
    stdin: { contents: script, resolveDir: import.meta.dirname, loader: 'ts' },
    ...{ bundle: true, write: false, format: 'iife', globalName: 'result', logLevel: 'silent' },
    ...{ platform: 'neutral', mainFields: ['module', 'main'], conditions: ['@sluice/source'] },
  })
  const bundle = outputFiles[0]?.text ?? ''
  expect(bundle).not.toMatch(/\b(?:require|from|import)\b[\s(]*["']node:/)
  return runInNewContext(`${bundle}; result.answers`, { ...ofFetch, ...more })
}

describe('in a runtime of fetch, without Node', () => {
  it('a handler is limited, and its requests in flight are counted', async () => {
    const script = `
      import { all, apiKey, firstOf, header, ip, rateLimit, user } from '@sluice/fetch'
      const info = { remoteAddress: '203.0.113.9' }
      const verify = (key) => key === 'k'
      const key = firstOf(all(header('x-tenant'), ip()), apiKey({ verify }), user(() => undefined), ip())
      const get = (headers = {}) => new Request('http://a.example/', { headers })
      const other = { remoteAddress: '2001:db8::1' }
      const limited = rateLimit({ limit: 1, window: '1m', key })(() => new Response('hello'))
      const busy = rateLimit({ limit: 1, algorithm: 'concurrency' })(() => new Response('hello'))
      async function ask() {
        const found = [await limited(get(), info), await limited(get(), info)]
        found.push(await limited(get(), other), await limited(get({ 'x-api-key': 'k' }), other))
        const first = await busy(get(), info)
        found.push(await busy(get(), info))
        await first.text()
        found.push(await busy(get(), info))
        return found.map((response) => [response.status, response.headers.get('ratelimit')])
      }
      export const answers = ask()
    `
    expect(await run(script)).toEqual([
      [200, '"default";r=0;t=60'],
      [429, '"default";r=0;t=60'],
      [200, '"default";r=0;t=60'],
      [200, '"default";r=0;t=60'],
      [429, '"default";r=0'],
      [200, '"default";r=0'],
    ])
  })

  it('an application of Hono is limited', async () => {
    const script = `
      import { rateLimit } from '@sluice/hono'
      import { Hono } from 'hono'
      const addressOf = (c) => c.req.header('cf-connecting-ip')
      const app = new Hono().use(rateLimit({ limit: 1, window: '1m', addressOf })).get('/', (c) => c.text('hello'))
      const ask = async (address) => (await app.request('/', { headers: { 'cf-connecting-ip': address } })).status
      export const answers = (async () => [await ask('192.0.2.1'), await ask('192.0.2.1'), await ask('192.0.2.2')])()
    `
    expect(await run(script)).toEqual([200, 429, 200])
  })

  it('a handler counts in a Redis behind HTTP', async () => {
    await using redis = await startRedis()
    await using front = await redisHttpFront(redis.url)
    const script = `
      import { rateLimit } from '@sluice/fetch'
      import { redisStore } from '@sluice/redis'
      import { redisByHttp } from '../redis/redis-by-http.ts'
      const client = redisByHttp('${front.url}', '${front.token}')
      const store = redisStore(client, { secret: 'sixteen letters!' })
      const limited = rateLimit({ name: 'api', limit: 2, window: '1m', deadlineMs: 10_000, store })(
        () => new Response('hello'),
      )
      const info = { remoteAddress: '203.0.113.9' }
      const ask = async () => (await limited(new Request('http://a.example/'), info)).status
      async function asked() {
        const found = [await ask(), await ask(), await ask()]
        await store.close()
        return found
      }
      export const answers = asked()
    `
    expect(await run(script, ofHttp)).toEqual([200, 200, 429])
  })
})
