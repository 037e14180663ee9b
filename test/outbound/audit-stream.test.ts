import { auditStream, type OutboundEvent } from '@sluice/outbound'
import { Redis } from 'ioredis'
import { expect, it, vi } from 'vitest'
import { startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const event: OutboundEvent = {
  outbound: 'crm',
  by: 'process-1',
  type: 'call',
  label: 'sync',
  cost: 1,
  startedAt: 0,
  waitMs: 0,
  runMs: 1,
  answer: 200,
}

it('keeps no more in memory than it may while Redis is frozen, counts what is lost, and goes on after', async () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  await using redis = await startRedis()
  const client = new Redis(redis.url)
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
  client.disconnect()
  warn.mockRestore()
})

it('refuses a bound that cannot be meant', () => {
  expect(() => auditStream({ client: { call: () => undefined }, maxPending: 0 })).toThrow(
    /^maxPending must be/,
  )
})
