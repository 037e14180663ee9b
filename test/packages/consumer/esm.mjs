import assert from 'node:assert/strict'
import { createFetch, waitFor } from '@sluice/client'
import { createLimiter, memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import fastifyPlugin, { rateLimitPlugin } from '@sluice/fastify'
import { rateLimit as fetchRateLimit } from '@sluice/fetch'
import * as headers from '@sluice/headers'
import { rateLimit as honoRateLimit } from '@sluice/hono'
import * as http from '@sluice/http'
import { rateLimit as koaRateLimit } from '@sluice/koa'
import { collectMetrics } from '@sluice/metrics'
import * as openTelemetry from '@sluice/metrics/opentelemetry'
import * as prometheus from '@sluice/metrics/prometheus'
import { createOutbound } from '@sluice/outbound'
import { policyFileProblems } from '@sluice/policies'
import { createQueue, createWorker, memoryBroker } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import { expectLimited, expectNotLimited, fakeClock, testStore } from '@sluice/testing'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import proveCalls from './prove-calls.cjs'
import proveLimits from './prove-limits.cjs'
import proveQueue from './prove-queue.cjs'

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

const clock = fakeClock()
const store = testStore()
const limited = fetchRateLimit({ limit: 1, window: '1m', store })(() => new Response('hello'))
const ask = () => limited(new Request('http://localhost/'), { remoteAddress: '127.0.0.1' })
await expectNotLimited(await ask(), { remaining: 0 })
await expectLimited(await ask(), { retryAfter: 60 })
clock.advance('1m')
await expectNotLimited(await ask())
clock.restore()

await proveLimits({
  ...{ express, rateLimit, fastify, rateLimitPlugin, Koa, koaRateLimit },
  ...{ fetchRateLimit, Hono, honoRateLimit },
})
await proveCalls(createOutbound)
await proveQueue({ createQueue, createWorker, memoryBroker })
console.log('esm: ok')
