import { redisStore, type UserClient } from '@sluice/redis'
import { Redis } from 'ioredis'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { describe, expect } from 'vitest'
import { GlideClient, ProtocolVersion } from '../support/glide.ts'
import { patientLimiter } from '../support/patient-limiter.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { it } from '../support/redis-test.ts'

let server: RedisServer
let tried = 0

it.beforeAll(({ redis: own }) => {
  server = own
})

/** Ten requests at once, a refund and a reset, which take every kind of argument and reply there is. */
async function prove(client: UserClient): Promise<void> {
  tried += 1
  const limiter = patientLimiter({
    store: redisStore(client, { prefix: `settings${tried}` }),
    limit: 5,
    window: '1h',
  })
  const decisions = await Promise.all(Array.from({ length: 10 }, () => limiter.consume('k')))
  expect(decisions.map(({ allowed, source }) => [allowed, source])).toEqual([
    ...Array.from({ length: 5 }, () => [true, 'store']),
    ...Array.from({ length: 5 }, () => [false, 'store']),
  ])
  if (decisions[0]) expect(await limiter.refund(decisions[0])).toBe(true)
  expect((await limiter.peek('k')).outcomes[0]).toMatchObject({ allowed: true, remaining: 1 })
  await limiter.reset('k')
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(5)
}

describe('redisStore works with a client as users set it up', () => {
  const settings: Record<string, string | number | boolean>[] = [
    {},
    { keyPrefix: 'app:' },
    { stringNumbers: true },
    { enableAutoPipelining: true },
    { enableOfflineQueue: false, lazyConnect: true },
    { db: 3, showFriendlyErrorStack: true },
  ]

  it.each(settings)('ioredis with %j', async (options) => {
    const client = new Redis({ host: '127.0.0.1', port: server.port, ...options })
    if (options.lazyConnect) await client.connect()
    await prove(client)
    client.disconnect()
  })

  it.each([
    {},
    { RESP: 3 as const },
    { RESP: 2 as const },
    { database: 4 },
    { disableOfflineQueue: true },
  ])('node-redis with %j', async (options) => {
    const client = createClient({ url: server.url, ...options })
    await client.connect()
    await prove(client)
    client.destroy()
  })

  it('iovalkey', async () => {
    const client = new Iovalkey(server.url)
    await prove(client)
    client.disconnect()
  })

  it.each(['RESP2', 'RESP3'] as const)('Valkey GLIDE with %s', async (protocol) => {
    const addresses = [{ host: '127.0.0.1', port: server.port }]
    const client = await GlideClient.createClient({
      addresses,
      protocol: ProtocolVersion[protocol],
    })
    await prove(client)
    client.close()
  })

  it('node-redis 4 with an isolation pool', async () => {
    const client = createClient4({ url: server.url, isolationPoolOptions: { max: 2 } })
    await client.connect()
    await prove(client)
    await client.disconnect()
  })
})
