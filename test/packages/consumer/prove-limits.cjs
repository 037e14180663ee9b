const assert = require('node:assert/strict')
const { once } = require('node:events')

const limits = { limit: 1, window: '1m' }

/** What sends a request to each framework, with the memory store. */
const frameworks = {
  Express({ express, rateLimit }) {
    const app = express().use(rateLimit(limits))
    app.get('/', (_request, response) => response.send('hello'))
    return served(app.listen(0, '127.0.0.1'))
  },
  async Fastify({ fastify, rateLimitPlugin }) {
    const app = fastify({ forceCloseConnections: true })
    await app.register(rateLimitPlugin, limits)
    app.get('/', async () => 'hello')
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    return { ask: () => fetch(url), close: () => app.close() }
  },
  Koa({ Koa, koaRateLimit }) {
    const app = new Koa().use(koaRateLimit(limits)).use((context) => {
      context.body = 'hello'
    })
    return served(app.listen(0, '127.0.0.1'))
  },
  fetch({ fetchRateLimit }) {
    const handler = fetchRateLimit(limits)(() => new Response('hello'))
    const request = () => new Request('http://a.example/')
    return { ask: () => handler(request(), { remoteAddress: '192.0.2.1' }) }
  },
  Hono({ Hono, honoRateLimit }) {
    const app = new Hono().use(honoRateLimit({ ...limits, addressOf: () => '192.0.2.1' }))
    app.get('/', (context) => context.text('hello'))
    return { ask: () => app.request('/') }
  },
}

async function served(server) {
  await once(server, 'listening')
  return {
    ask: () => fetch(`http://127.0.0.1:${server.address().port}/`),
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Allows one request a minute in each framework, and expects the second to be refused. */
module.exports = async function proveLimits(installed) {
  for (const [name, start] of Object.entries(frameworks)) {
    const { ask, close } = await start(installed)
    const [allowed, refused] = [await ask(), await ask()]
    assert.deepEqual([allowed.status, refused.status], [200, 429], name)
    assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]/)
    await Promise.all([allowed.text(), refused.text()])
    await close?.()
  }
}
