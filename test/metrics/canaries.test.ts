import { trace } from '@opentelemetry/api'
import { apiKey, rateLimit, tenant, user } from '@sluice/express'
import { collectMetrics, denialLog } from '@sluice/metrics'
import { openTelemetry, traces } from '@sluice/metrics/opentelemetry'
import { prometheus } from '@sluice/metrics/prometheus'
import { redisStore } from '@sluice/redis'
import express from 'express'
import type { Redis } from 'ioredis'
import { Registry } from 'prom-client'
import request from 'supertest'
import { expect } from 'vitest'
import { it } from '../support/redis-test.ts'
import { until } from '../support/until.ts'
import { meterOfSdk, traceTests } from './otel.ts'
import { scraped } from './scrape.ts'

const spans = traceTests()

/** Planted wherever an identity or a secret can be. An address cannot have letters. */
const canary = /canary|203\.0\.113\.77/i

/** All keys of Redis, and their values as bytes. */
async function allOfRedis(client: Redis): Promise<string> {
  const keys = await client.keys('*')
  const dumps = await Promise.all(keys.map((key) => client.dumpBuffer(key)))
  return [...keys, ...dumps.map((bytes) => bytes?.toString('latin1') ?? '')].join('\n')
}

it('no identity, key or secret is in metrics, logs, traces or Redis', async ({ client }) => {
  // What DUMP shows is not compressed then.
  await client.config('SET', 'rdbcompression', 'no')
  const { meter, exported } = meterOfSdk()
  const store = redisStore(client, { secret: 'canary-secret' })
  const metrics = collectMetrics({ store })
  openTelemetry(metrics, { meter })
  const registry = new Registry()
  prometheus(metrics, { registry })
  const log: unknown[] = []
  const denials = denialLog({ sink: (record) => void log.push(record) })

  const ofTenant = tenant((native: express.Request) => native.get('x-tenant'))
  const app = express()
  app.set('trust proxy', true)
  app.use((_incoming, response, next) => {
    trace.getTracer('app').startActiveSpan('request', (span) => {
      response.on('finish', () => span.end())
      next()
    })
  })
  app.use(
    '/customers/:id',
    rateLimit({
      store,
      observers: [metrics, denials, traces({ trace }), { onStoreError: () => undefined }],
      idempotencyKey: true,
      penalty: { name: 'ban', after: 2, within: '1m', for: '1m' },
      policies: [
        { name: 'by-address', limit: 2, window: '1m' },
        { name: 'by-key', limit: 3, window: '1m', key: apiKey() },
        { name: 'by-user', limit: 3, window: '1m', key: user(() => 'canary-user') },
        { name: 'by-tenant', limit: 3, window: '1m', key: ofTenant },
        { limit: 3, window: '1m', mode: 'shadow' },
      ],
    }),
    (_incoming, response) => void response.send('ok'),
  )
  const who = { 'X-Forwarded-For': '203.0.113.77', 'X-Tenant': 'canary-tenant' }
  const secrets = { Authorization: 'Bearer canary-token', Cookie: 'session=canary-cookie' }
  for (let i = 0; i < 8; i += 1) {
    await request(app)
      .get(`/customers/canary-path-${i}?api_key=canary-query`)
      .set({ ...who, ...secrets, 'X-API-Key': `canary-key-${'x'.repeat(i * 20)}` })
      .set('Idempotency-Key', i < 2 ? 'canary-idempotency' : `canary-idempotency-${i}`)
  }
  await until('the fleet is known', () => {
    return metrics.topKeys({ policy: 'by-key' })?.scope === 'fleet'
  })
  denials.flush()

  const told = spans
    .getFinishedSpans()
    .map(({ name, attributes, events }) => [name, attributes, events])
  const names = ['by-address', 'by-key', 'by-user', 'by-tenant']
  const outputs = {
    page: await scraped(metrics),
    openMetrics: await scraped(metrics, 'application/openmetrics-text'),
    promClient: await registry.metrics(),
    openTelemetry: JSON.stringify(await exported()),
    spans: JSON.stringify(told),
    topKeys: JSON.stringify(names.map((policy) => metrics.topKeys({ policy }))),
    log: JSON.stringify(log),
    redis: await allOfRedis(client),
  }
  for (const [name, output] of Object.entries(outputs)) {
    expect(output.length, name).toBeGreaterThan(100)
    expect(output, name).not.toMatch(canary)
  }
  expect(outputs.page).toContain('sluice_denials_total{policy="by-address"')
  expect(outputs.spans).toContain('sluice.decision')
  await store.close()
}, 40_000)
