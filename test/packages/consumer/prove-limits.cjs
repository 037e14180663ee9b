const assert = require('node:assert/strict')
const { once } = require('node:events')

/** Allows one request a minute in each framework, with the memory store, and expects the second to be refused. */
module.exports = async function proveLimits(installed) {
  const { express, rateLimit, fastify, rateLimitPlugin, Koa, koaRateLimit } = installed
  const { fetchRateLimit, Hono, honoRateLimit } = installed
  assert.deepEqual(await askExpress(express, rateLimit), [200, 429], 'Express')
  assert.deepEqual(await askFastify(fastify, rateLimitPlugin), [200, 429], 'Fastify')
  assert.deepEqual(await askKoa(Koa, koaRateLimit), [200, 429], 'Koa')
  assert.deepEqual(await askFetch(fetchRateLimit), [200, 429], 'fetch')
  assert.deepEqual(await askHono(Hono, honoRateLimit), [200, 429], 'Hono')
}

async function askExpress(express, rateLimit) {
  const app = express()
  app.use(rateLimit({ limit: 1, window: '1m' }))
  app.get('/', (_request, response) => {
    response.send('hello')
  })
  return askServer(app.listen(0, '127.0.0.1'))
}

async function askKoa(Koa, rateLimit) {
  const app = new Koa()
  app.use(rateLimit({ limit: 1, window: '1m' }))
  app.use((context) => {
    context.body = 'hello'
  })
  return askServer(app.listen(0, '127.0.0.1'))
}

async function askFetch(rateLimit) {
  const handler = rateLimit({ limit: 1, window: '1m' })(() => new Response('hello'))
  const ask = () => handler(new Request('http://a.example/'), { remoteAddress: '192.0.2.1' })
  return [(await ask()).status, (await ask()).status]
}

async function askHono(Hono, rateLimit) {
  const addressOf = () => '192.0.2.1'
  const app = new Hono().use(rateLimit({ limit: 1, window: '1m', addressOf }))
  app.get('/', (context) => context.text('hello'))
  return [(await app.request('/')).status, (await app.request('/')).status]
}

async function askServer(server) {
  await once(server, 'listening')
  const statuses = await askTwice(`http://127.0.0.1:${server.address().port}/`)
  server.close()
  server.closeAllConnections()
  return statuses
}

async function askFastify(fastify, rateLimitPlugin) {
  const app = fastify({ forceCloseConnections: true })
  await app.register(rateLimitPlugin, { limit: 1, window: '1m' })
  app.get('/', async () => 'hello')
  const statuses = await askTwice(await app.listen({ port: 0, host: '127.0.0.1' }))
  await app.close()
  return statuses
}

async function askTwice(url) {
  const statuses = []
  for (let request = 1; request <= 2; request++) {
    const response = await fetch(url)
    await response.text()
    if (response.status === 429) assert.match(response.headers.get('retry-after') ?? '', /^[1-9]/)
    statuses.push(response.status)
  }
  return statuses
}
