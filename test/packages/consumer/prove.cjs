const assert = require('node:assert/strict')
const proveLimits = require('./prove-limits.cjs')
const proveQueue = require('./prove-queue.cjs')

/** Uses each package once, all loaded by one module system. */
module.exports = async function prove(load) {
  const { createFetch, waitFor } = await load('@sluice/client')
  assert.equal((await waitFor(await createFetch()('data:,hello'))).status, 200)
  for (const name of ['headers', 'http', 'metrics/opentelemetry', 'metrics/prometheus']) {
    assert.notDeepEqual(Object.keys(await load(`@sluice/${name}`)), [], name)
  }
  const { policyFileProblems } = await load('@sluice/policies')
  assert.deepEqual(policyFileProblems('policies: [{ name: a, limit: 1, window: 1s }]'), [])

  const { collectMetrics } = await load('@sluice/metrics')
  const { createLimiter, memoryStore } = await load('@sluice/core')
  const metrics = collectMetrics()
  const limiter = createLimiter({
    observers: [metrics],
    policies: [{ name: 'default', limit: 1, window: '1m' }],
    store: memoryStore(),
  })
  assert.equal((await limiter.consume('user:42')).allowed, true)
  assert.equal((await limiter.consume('user:42')).allowed, false)
  assert.equal(metrics.topKeys({ policy: 'default' })?.total, 2)

  const { Redis } = await load('ioredis')
  const { redisStore } = await load('@sluice/redis')
  const redis = new Redis({ lazyConnect: true })
  assert.equal(typeof redisStore(redis).apply, 'function')
  redis.disconnect()

  const { default: fastifyPlugin, rateLimitPlugin } = await load('@sluice/fastify')
  assert.equal(fastifyPlugin, rateLimitPlugin)
  const { rateLimit: fetchRateLimit } = await load('@sluice/fetch')
  const defaultOf = (loaded) => loaded.default ?? loaded
  await proveLimits({
    express: defaultOf(await load('express')),
    fastify: defaultOf(await load('fastify')),
    Koa: defaultOf(await load('koa')),
    Hono: (await load('hono')).Hono,
    rateLimit: (await load('@sluice/express')).rateLimit,
    rateLimitPlugin,
    koaRateLimit: (await load('@sluice/koa')).rateLimit,
    fetchRateLimit,
    honoRateLimit: (await load('@sluice/hono')).rateLimit,
  })

  const { createOutbound } = await load('@sluice/outbound')
  const vendor = createOutbound({ name: 'vendor', limits: [{ limit: 5, window: '1s' }] })
  assert.equal(await (await vendor.fetch('data:,hello')).text(), 'hello')
  await vendor.close()
  await proveQueue(await load('@sluice/queue'))

  const testing = await load('@sluice/testing')
  const clock = testing.fakeClock()
  const store = testing.testStore()
  const limited = fetchRateLimit({ limit: 1, window: '1m', store })(() => new Response('hello'))
  const ask = () => limited(new Request('http://localhost/'), { remoteAddress: '127.0.0.1' })
  await testing.expectNotLimited(await ask(), { remaining: 0 })
  await testing.expectLimited(await ask(), { retryAfter: 60 })
  clock.advance('1m')
  await testing.expectNotLimited(await ask())
  clock.restore()
}
