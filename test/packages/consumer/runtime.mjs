// Runs the kits of @sluice/testing on Bun or Deno: prints what passed and failed, as JSON by subject.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createFetch } from '@sluice/client'
import { memoryStore } from '@sluice/core'
import { rateLimit as limitExpress } from '@sluice/express'
import { rateLimitPlugin } from '@sluice/fastify'
import { rateLimit as limitFetch } from '@sluice/fetch'
import { rateLimit as limitHono } from '@sluice/hono'
import { nodeRouter } from '@sluice/http/adapter'
import { redisStore } from '@sluice/redis'
import { adapterConformance, storeConformance } from '@sluice/testing'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { runKit } from './run-kit.mjs'

const ignore = () => undefined

/** A server for fetch handlers, which get the address of the connection. */
function serveFetch(handler) {
  if (globalThis.Bun) {
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request, self) => handler(request, self.requestIP(request).address, self),
    })
    return { url: `http://127.0.0.1:${server.port}`, close: () => server.stop(true) }
  }
  const server = Deno.serve({ hostname: '127.0.0.1', port: 0, onListen: ignore }, (request, info) =>
    handler(request, info.remoteAddr.hostname, info),
  )
  return { url: `http://127.0.0.1:${server.addr.port}`, close: () => server.shutdown() }
}

async function overFetch({ limits, handle, onError, stream }) {
  let app = async ({ url, method }) => {
    if (url.endsWith('/stream')) return new Response(stream())
    const isServed = new URL(url).pathname === '/' && /GET|HEAD/.test(method)
    const status = isServed ? await handle() : 404
    return new Response(status === 304 ? null : 'hello', { status })
  }
  const router = nodeRouter
  for (const options of [...limits].reverse()) app = limitFetch({ router, ...options })(app)
  return serveFetch(async (request, remoteAddress) => {
    try {
      return await app(request, { remoteAddress })
    } catch (error) {
      onError(error)
      return new Response(error.message, { status: 500 })
    }
  })
}

async function overHono({ limits, handle, onError, stream }) {
  const app = new Hono()
  for (const options of limits) app.use(limitHono({ router: nodeRouter, ...options }))
  app.get('/', async (c) => {
    const status = await handle()
    return status === 304 ? c.body(null, 304) : c.text('hello', status)
  })
  app.get('/stream', (c) => c.body(stream()))
  app.onError((error, c) => {
    onError(error)
    return c.text(error.message, 500)
  })
  return serveFetch((request, _address, info) => app.fetch(request, info))
}

async function overExpress({ limits, handle, onError, stream }) {
  const app = express()
  for (const options of limits) app.use(limitExpress(options))
  app.get('/', async (_request, response) => response.status(await handle()).send('hello'))
  app.get('/stream', (_request, response) => Readable.fromWeb(stream()).pipe(response))
  app.use((error, _request, response, _next) => {
    onError(error)
    response.status(500).type('text').send(error.message)
  })
  const server = createServer(app)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${server.address().port}`, close }
}

async function overFastify({ limits, handle, onError, stream }) {
  const app = fastify({ forceCloseConnections: true })
  app.setErrorHandler((error, _request, reply) => {
    onError(error)
    return reply.code(500).type('text/plain').send(error.message)
  })
  for (const options of limits) await app.register(rateLimitPlugin, options)
  app.get('/', async (_request, reply) => reply.code(await handle()).send('hello'))
  app.get('/stream', (_request, reply) => reply.send(Readable.fromWeb(stream())))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { url: `http://127.0.0.1:${app.server.address().port}`, close: () => app.close() }
}

const [url, prefix] = process.argv.slice(2)
let opened = 0
function over(client, clock) {
  const own = { heartbeatMs: 0, denialTtlMs: 0, prefix: `${prefix}${opened++}` }
  const store = redisStore(client, { clock, ...own })
  return { store, close: () => store.close().then(() => client.disconnect()) }
}
const overIoredis = (clock) => over(new Redis(url), clock)
const overNodeRedis = async (clock) => over(await createClient({ url }).connect(), clock)

function clients({ it }) {
  it('waits until it is admitted', async () => {
    const limits = [{ limit: 2, window: '1s' }]
    const app = await overFetch({ limits, handle: () => 200, onError: ignore })
    const call = createFetch()
    const beganMs = performance.now()
    for (let i = 0; i < 3; i += 1) assert.equal((await call(app.url)).status, 200)
    assert.ok(performance.now() - beganMs >= 990)
    await app.close()
  })
}

/** Beside the kit: responses that go on after their headers. */
function streams({ it }, serve) {
  it('holds a slot until its stream has ended, or its client has left', async () => {
    let end = ignore
    const stream = () =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('hello'))
          end = () => controller.close()
        },
      })
    const limits = [{ algorithm: 'concurrency', limit: 1, key: () => 'everybody' }]
    const app = await serve({ limits, handle: () => 200, onError: ignore, stream })
    const ask = (signal) => fetch(`${app.url}/stream`, { signal })
    const leaving = new AbortController()
    const untilFree = async (signal) => {
      for (let tries = 0; tries < 30; tries += 1) {
        const response = await ask(signal)
        if (response.status === 200) return response
        await response.text()
        await sleep(100)
      }
      throw new Error('the slot is still held after three seconds')
    }
    const first = await ask()
    const second = await ask()
    assert.deepEqual([first.status, second.status], [200, 429])
    await second.text()
    end()
    assert.equal(await first.text(), 'hello')
    const third = await untilFree(leaving.signal)
    await third.body.getReader().read()
    leaving.abort()
    const fourth = await untilFree()
    end()
    await fourth.text()
    await app.close()
  })
}

const stores = (open) => (kit) => storeConformance({ ...kit, open })
const adapters = (serve) => (kit) => {
  adapterConformance({ ...kit, serve })
  streams(kit, serve)
}
const subjects = {
  'memory store': stores(() => ({ store: memoryStore() })),
  'Redis with ioredis': stores(overIoredis),
  'Redis with node-redis': stores(overNodeRedis),
  '@sluice/fetch': adapters(overFetch),
  '@sluice/hono': adapters(overHono),
  '@sluice/express': adapters(overExpress),
  '@sluice/fastify': adapters(overFastify),
  '@sluice/client': clients,
}

const results = {}
for (const [subject, describeAll] of Object.entries(subjects)) {
  results[subject] = await runKit(describeAll)
}
console.log(JSON.stringify(results))
process.exit(0)
