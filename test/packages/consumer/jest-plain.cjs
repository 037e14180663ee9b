const { rateLimit } = require('@sluice/express')
const { default: fastifyPlugin, rateLimitPlugin } = require('@sluice/fastify')
const { rateLimit: koaRateLimit } = require('@sluice/koa')
const { rateLimit: fetchRateLimit } = require('@sluice/fetch')
const { rateLimit: honoRateLimit } = require('@sluice/hono')
const { createOutbound } = require('@sluice/outbound')
const { bullmqBroker, createQueue, createWorker, memoryBroker } = require('@sluice/queue')
const { redisStore } = require('@sluice/redis')
const express = require('express')
const fastify = require('fastify')
const { Redis } = require('ioredis')
const { Hono } = require('hono')
const Koa = require('koa')
const proveCalls = require('./prove-calls.cjs')
const proveLimits = require('./prove-limits.cjs')
const proveQueue = require('./prove-queue.cjs')

test('limits requests', async () => {
  expect(fastifyPlugin).toBe(rateLimitPlugin)
  await proveLimits({
    ...{ express, rateLimit, fastify, rateLimitPlugin, Koa, koaRateLimit },
    ...{ fetchRateLimit, Hono, honoRateLimit },
  })
})

test('calls a third party', async () => {
  await proveCalls(createOutbound)
})

test('runs jobs', async () => {
  await proveQueue({ createQueue, createWorker, memoryBroker })
})

test('makes a store over Redis', () => {
  const redis = new Redis({ lazyConnect: true })
  expect(redisStore(redis)).toHaveProperty('apply')
  redis.disconnect()
})

test('looks for bullmq as CommonJS does', async () => {
  const queue = createQueue({ broker: bullmqBroker({ connection: 'redis://localhost:1' }) })
  await expect(queue.enqueue({ identity: 'ada', payload: null })).rejects.toMatchObject({
    code: 'SLUICE_BROKER_FAILED',
    cause: { code: 'MODULE_NOT_FOUND' },
  })
})
