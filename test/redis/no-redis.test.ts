import { inspect } from 'node:util'
import { createLimiter, type StoreErrorEvent } from '@sluice/core'
import { redisStore, type UserClient } from '@sluice/redis'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { storeFailure } from '../../packages/redis/src/replies/store-failure.ts'
import { freePort } from '../support/free-port.ts'
import {
  clusterClients,
  connected,
  itself,
  type RedisClient,
  sentinelClients,
  singleClients,
} from '../support/redis-clients.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

let locked: RedisServer
let nobody = 0
const closing: (() => unknown)[] = []

beforeAll(async () => {
  locked = await startRedis({ args: ['--requirepass', 'right-password'] })
  nobody = await freePort()
})

afterEach(async () => {
  vi.restoreAllMocks()
  for (const close of closing.splice(0)) await close()
})

afterAll(async () => {
  await locked.stop()
})

/** It is connected after the store is made, which then listens. */
function connecting({ client, connect, close }: RedisClient): UserClient {
  setImmediate(() => void connect().catch(() => undefined))
  closing.push(close)
  return client
}

type Made = readonly [name: string, make: (port: number) => RedisClient]

const single = Object.entries(singleClients)
const clusters = Object.entries(clusterClients).map(
  ([name, make]): Made => [`${name}, Cluster`, (port) => make([port])],
)
const sentinels = Object.entries(sentinelClients).map(
  ([name, make]): Made => [`${name}, Sentinel`, (port) => make([port], 'mymaster')],
)

async function failureOf(client: UserClient, says: RegExp): Promise<StoreErrorEvent['error']> {
  const errors: StoreErrorEvent['error'][] = []
  const limiter = createLimiter({
    store: redisStore(client, { heartbeatMs: 0 }),
    limit: 5,
    window: '1m',
    observers: { onStoreError: ({ error }) => void errors.push(error) },
  })
  const found = () => errors.find(({ message }) => says.test(message))
  await until(`a failure that says ${says}`, async () => {
    await limiter.consume('k')
    return found() !== undefined
  }).catch(() => {
    throw new Error(`only ${inspect(errors.map(({ message }) => message))}`)
  })
  const failure = found()
  if (!failure) throw new Error('no failure')
  return failure
}

describe.each([...single, ...clusters, ...sentinels])('%s', (_name, make) => {
  it('says that nobody is there', async () => {
    const { cause, message } = await failureOf(
      connecting(make(nobody)),
      /ECONNREFUSED|slots cache|root nodes|entinel/,
    )
    expect(cause).toBeInstanceOf(Error)
    expect(message).toMatch(/see that Redis runs/)
  })
})

describe.each([...single, ...clusters])('%s', (_name, make) => {
  it('says that a password is missing, with the default deadline', async () => {
    const { cause, message } = await failureOf(connecting(make(locked.port)), /NOAUTH/)
    expect(cause).toBeInstanceOf(Error)
    expect(message).toMatch(/username and password/)
  })
})

it.each([
  ['ioredis', (secret: string) => itself(new Redis(secret))],
  ['node-redis', (secret: string) => connected(createClient({ url: secret }))],
])('tells no password of a URL: %s', async (_name, make) => {
  const client = connecting(make(`redis://:wrong-secret@127.0.0.1:${locked.port}`))
  const failure = await failureOf(client, /WRONGPASS|NOAUTH/)
  expect(inspect(failure, { depth: 9 })).not.toContain('wrong-secret')
})

it.each([...single, ...clusters, ...sentinels].filter(([name]) => name.startsWith('node-redis')))(
  'says that nobody has connected %s',
  async (_name, make) => {
    expect(await failureOf(make(1).client, /not connected/)).toMatchObject({
      code: 'SLUICE_REDIS_CONNECTION',
      message: expect.stringContaining('await client.connect()'),
    })
  },
)

it('names the reason of a retry that was given up, and neither passwords nor keys', () => {
  const last = new Error('connect ECONNREFUSED 127.0.0.1:6379')
  const failure = storeFailure(new Error('Reached the max retries per request limit'), last)
  expect(failure.message).toMatch(/max retries.*ECONNREFUSED.*see that Redis runs/)
  expect(failure.cause).toMatchObject({ message: last.message })
  const broken = new Error('cannot connect to rediss://app:hunter2@redis.example:6379/0')
  expect(inspect(storeFailure(broken), { depth: 9 })).not.toContain('hunter2')
  const unknown = "ERR unknown command 'EVALSHA', with args beginning with: 'abc' '1' 'user:42' "
  expect(inspect(storeFailure(new Error(unknown)), { depth: 9 })).not.toContain('user:42')
})

it('writes one line to the console where nobody listens', async () => {
  vi.resetModules()
  const { createLimiter: create } = await import('@sluice/core')
  const { redisStore: open } = await import('@sluice/redis')
  const lines = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  const errors = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const client = connecting(itself(new Redis(nobody, '127.0.0.1')))
  const limiter = create({ store: open(client, { heartbeatMs: 0 }), limit: 5, window: '1m' })
  for (let i = 0; i < 5; i += 1) await limiter.consume('k')
  expect(errors).not.toHaveBeenCalled()
  expect(lines).toHaveBeenCalledTimes(1)
  expect(lines.mock.calls[0]?.[0]).toMatch(/^sluice: .*ECONNREFUSED.*see that Redis runs/)
})
