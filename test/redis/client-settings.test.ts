import { execFileSync } from 'node:child_process'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { describe, expect, it } from 'vitest'
import { GlideClient, ProtocolVersion } from '../support/glide.ts'
import { patientLimiter } from '../support/patient-limiter.ts'
import { connected, itself, type RedisClient } from '../support/redis-clients.ts'
import { redisOfFile } from '../support/redis-test.ts'

const { redis: server } = await redisOfFile()

let tried = 0

/** Ten requests at once, a refund and a reset, which take every kind of argument and reply there is. */
async function prove({ client, connect, close }: RedisClient): Promise<void> {
  await connect()
  tried += 1
  const store = redisStore(client, { prefix: `settings${tried}` })
  const limiter = patientLimiter({ store, limit: 5, window: '1h' })
  const decisions = await Promise.all(Array.from({ length: 10 }, () => limiter.consume('k')))
  expect(decisions.map(({ source }) => source)).toEqual(Array(10).fill('store'))
  const admitted = [...Array(5).fill(true), ...Array(5).fill(false)]
  expect(decisions.map(({ allowed }) => allowed)).toEqual(admitted)
  if (decisions[0]) expect(await limiter.refund(decisions[0])).toBe(true)
  expect(await limiter.peek('k')).toMatchObject({ allowed: true, remaining: 1 })
  await limiter.reset('k')
  expect((await limiter.peek('k')).remaining).toBe(5)
  await close()
}

describe('redisStore works with a client as users set it up', () => {
  const settings: Record<string, string | number | boolean>[] = [
    { keyPrefix: 'app:' },
    { stringNumbers: true },
    { enableAutoPipelining: true },
    { enableOfflineQueue: false, lazyConnect: true },
    { db: 3, showFriendlyErrorStack: true },
  ]

  it.each(settings)('ioredis with %j', async (options) => {
    const client = new Redis({ host: '127.0.0.1', port: server.port, ...options })
    await prove(options.lazyConnect ? connected(client) : itself(client))
  })

  it.each([
    { RESP: 3 as const },
    { RESP: 2 as const },
    { database: 4 },
    { disableOfflineQueue: true },
  ])('node-redis with %j', (options) =>
    prove(connected(createClient({ url: server.url, ...options }))),
  )

  it('node-redis 4 with an isolation pool', () =>
    prove(connected(createClient4({ url: server.url, isolationPoolOptions: { max: 2 } }))))

  it('ioredis, which extends String, and leaves text methods fast', () => {
    const program = `import { Redis } from 'ioredis'; import { redisStore } from '@sluice/redis'
      redisStore(new Redis({ lazyConnect: true }))
      console.log(new Function('return %HasFastProperties(String.prototype)')())`
    const flags = ['--allow-natives-syntax', '--conditions=@sluice/source', '--import=tsx']
    const args = [...flags, '--input-type=module', '--eval', program]
    expect(execFileSync(process.execPath, args, { encoding: 'utf8' })).toBe('true\n')
  })

  it('iovalkey', () => prove(itself(new Iovalkey(server.url))))

  it.each(['RESP2', 'RESP3'] as const)('Valkey GLIDE with %s', async (name) => {
    const addresses = [{ host: '127.0.0.1', port: server.port }]
    const protocol = ProtocolVersion[name]
    const client = await GlideClient.createClient({ addresses, protocol })
    await prove({ client, connect: async () => undefined, close: async () => client.close() })
  })
})
