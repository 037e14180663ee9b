const assert = require('node:assert/strict')
const { createFetch, waitFor } = require('@sluice/client')
const { createLimiter, memoryStore } = require('@sluice/core')
const { rateLimit } = require('@sluice/express')
const { default: fastifyPlugin, rateLimitPlugin } = require('@sluice/fastify')
const headers = require('@sluice/headers')
const http = require('@sluice/http')
const { rateLimit: koaRateLimit } = require('@sluice/koa')
const { rateLimit: fetchRateLimit } = require('@sluice/fetch')
const { rateLimit: honoRateLimit } = require('@sluice/hono')
const { collectMetrics } = require('@sluice/metrics')
const { policyFileProblems } = require('@sluice/policies')
const openTelemetry = require('@sluice/metrics/opentelemetry')
const prometheus = require('@sluice/metrics/prometheus')
const { createOutbound } = require('@sluice/outbound')
const { createQueue, createWorker, memoryBroker } = require('@sluice/queue')
const { redisStore } = require('@sluice/redis')
const express = require('express')
const fastify = require('fastify')
const { Hono } = require('hono')
const Koa = require('koa')
const proveCalls = require('./prove-calls.cjs')
const proveLimits = require('./prove-limits.cjs')
const proveQueue = require('./prove-queue.cjs')

main()

async function main() {
  assert.equal(fastifyPlugin, rateLimitPlugin)
  assert.equal(typeof redisStore, 'function')
  assert.notDeepEqual(Object.keys(headers), [])
  assert.equal((await waitFor(await createFetch()('data:,hello'))).status, 200)
  assert.notDeepEqual(Object.keys(http), [])

  assert.equal(policyFileProblems('policies: [{ name: a, limit: 1, window: 1s }]').length, 0)
  const metrics = collectMetrics()
  assert.notDeepEqual([Object.keys(openTelemetry), Object.keys(prometheus)], [[], []])

  const limiter = createLimiter({
    observers: [metrics],
    policies: [{ name: 'default', limit: 1, window: '1m' }],
    store: memoryStore(),
  })
  assert.equal((await limiter.consume('user:42')).allowed, true)
  assert.equal((await limiter.consume('user:42')).allowed, false)

  assert.equal(metrics.topKeys({ policy: 'default' })?.total, 2)

  await proveLimits({
    ...{ express, rateLimit, fastify, rateLimitPlugin, Koa, koaRateLimit },
    ...{ fetchRateLimit, Hono, honoRateLimit },
  })
  await proveCalls(createOutbound)
  await proveQueue({ createQueue, createWorker, memoryBroker })
  console.log('cjs: ok')
}
