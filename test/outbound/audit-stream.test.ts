import { auditStream, createOutbound, type OutboundEvent } from '@sluice/outbound'
import { redisStore } from '@sluice/redis'
import { createClient } from 'redis'
import { expect, onTestFinished, vi } from 'vitest'
import { it } from '../support/redis-test.ts'
import { until } from '../support/until.ts'

const event: OutboundEvent = {
  ...({ outbound: 'crm', by: 'process-1', type: 'call', label: 'sync', cost: 1 } as const),
  ...{ startedAt: 0, waitMs: 0, runMs: 1, answer: 200 },
}

const libraries = ['ioredis', 'node-redis']

it.for(libraries)('has each call, and is capped: %s', async (library, { redis, client }) => {
  await client.flushall()
  const nodeRedis = createClient({ url: redis.url })
  if (library === 'node-redis') {
    await nodeRedis.connect()
    onTestFinished(() => nodeRedis.destroy())
  }
  const outbound = createOutbound({
    name: 'crm',
    limits: [{ limit: 1_000, window: '1s' }],
    store: redisStore(client),
    by: 'process-1',
    observers: auditStream({ client: library === 'ioredis' ? client : nodeRedis, maxKept: 10 }),
  })
  const calls = Array.from({ length: 130 }, (_, i) => i)
  await Promise.all(calls.map((i) => outbound.schedule(async () => i, { label: 'sync' })))
  await until('it is written', async () => (await client.xlen('sluice:outbound')) > 0)
  expect(await client.xlen('sluice:outbound')).toBeLessThan(130)
  const [entry] = await client.xrevrange('sluice:outbound', '+', '-', 'COUNT', 1)
  const fields = entry?.[1] ?? []
  const pairs = fields.flatMap((field, i) => (i % 2 === 0 ? [[field, fields[i + 1]]] : []))
  expect(Object.fromEntries(pairs)).toMatchObject({
    ...{ outbound: 'crm', by: 'process-1', label: 'sync', cost: '1', answer: 'ok' },
  })
  await outbound.close()
})

it('stays within its memory bound while Redis is frozen, counts lost records, and continues afterwards', async ({
  redis,
  client,
}) => {
  await client.flushall()
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  onTestFinished(() => warn.mockRestore())
  const audit = auditStream({ client, maxPending: 100 })
  audit.onEvent(event)
  await until('it is written', async () => (await client.xlen('sluice:outbound')) === 1)
  redis.pause()
  for (let i = 0; i < 5_000; i += 1) audit.onEvent(event)
  expect(audit.dropped).toBe(4_900)
  expect(warn).toHaveBeenCalledWith(expect.stringContaining('maxPending'))
  redis.resume()
  await until('the rest is written', async () => (await client.xlen('sluice:outbound')) === 101)
  audit.onEvent(event)
  await until('it goes on', async () => (await client.xlen('sluice:outbound')) === 102)
  expect(audit.dropped).toBe(4_900)
})

it('rejects an invalid bound', () => {
  const make = () => auditStream({ client: { call: () => undefined }, maxPending: 0 })
  expect(make).toThrow(/^maxPending must be/)
})
