import { createLimiter, memoryStore } from '@sluice/core'
import { apiKey, rateLimit } from '@sluice/express'
import fastifyDefault, { rateLimitPlugin } from '@sluice/fastify'
import { redisStore } from '@sluice/redis'
import express from 'express'
import fastify from 'fastify'
import { Redis } from 'ioredis'
import request from 'supertest'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

let server: RedisServer
let redis: Redis

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
})

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

describe('the public surface', () => {
  it('limits an Express app in one line', async () => {
    const app = express()
    app.use(rateLimit({ limit: 100, window: '1m' }))
    app.get('/', (_req, res) => void res.send('ok'))
    await request(app).get('/').expect(200).expect('RateLimit', '"default";r=99;t=60')
    await request(app).head('/').expect(200).expect('RateLimit', '"default";r=98;t=60')
  })

  it('decides two policies at once in Redis, by API key', async () => {
    const app = express()
    app.use(
      rateLimit({
        store: redisStore(redis),
        key: apiKey(),
        policies: [
          { name: 'burst', limit: 2, window: '10m' },
          { name: 'sustained', limit: 600, window: '1h' },
        ],
      }),
    )
    app.get('/', (_req, res) => void res.send('ok'))
    const ask = (): request.Test => request(app).get('/').set('X-API-Key', 'a')
    await ask().expect(200)
    await ask()
      .expect(200)
      .expect('RateLimit', /^"burst";r=0;t=\d+, "sustained";r=598;t=3600$/)
    const refused = await ask().expect(429).expect('Content-Type', 'application/problem+json')
    expect(JSON.parse(refused.text)).toMatchObject({ 'violated-policies': ['burst'] })
    expect(refused.headers.ratelimit).toMatch(/"sustained";r=598;/)
    await request(app).get('/').set('X-API-Key', 'b').expect(200)
  })

  it('limits a Fastify app, with routes that replace the limit or have none', async () => {
    expect(fastifyDefault).toBe(rateLimitPlugin)
    const app = fastify()
    await app.register(rateLimitPlugin, { limit: 100, window: '1m' })
    app.get('/', async () => 'ok')
    app.get('/search', { config: { rateLimit: { limit: 1, window: '1m' } } }, async () => 'ok')
    app.get('/health', { config: { rateLimit: false } }, async () => 'ok')
    await app.ready()
    await request(app.server).get('/').expect(200).expect('RateLimit', '"default";r=99;t=60')
    await request(app.server).get('/search').expect(200)
    await request(app.server).get('/search').expect(429)
    await request(app.server).get('/').expect(200).expect('RateLimit', '"default";r=98;t=60')
    const health = await request(app.server).get('/health').expect(200)
    expect(health.headers).not.toHaveProperty('ratelimit')
    await request(app.server).get('/nowhere').expect(404).expect('RateLimit', '"default";r=97;t=60')
    await app.close()
  })

  it('decides without HTTP', async () => {
    const limiter = createLimiter({
      policies: [{ name: 'default', limit: 100, window: '1m' }],
      store: memoryStore(),
    })
    const decision = await limiter.consume('user:42', { cost: 5 })
    expect(decision).toMatchObject({
      allowed: true,
      retryAfterMs: 0,
      outcomes: [{ remaining: 95 }],
    })
    expect((await limiter.peek('user:42')).remaining).toBe(95)
    expect(await limiter.refund(decision)).toBe(true)
    await limiter.reset('user:42')
    expect((await limiter.peek('user:42')).remaining).toBe(100)
  })
})
