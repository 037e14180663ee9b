import { inspect } from 'node:util'
import { createLimiter, type StoreErrorEvent } from '@sluice/core'
import { redisStore, type UserClient } from '@sluice/redis'
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { createClient, createCluster, createSentinel } from 'redis'
import { createClient as createClient4 } from 'redis4'
import { createClient as createClient5, createSentinel as createSentinel5 } from 'redis5'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { storeFailure } from '../../packages/redis/src/replies/store-failure.ts'
import { freePort } from '../support/free-port.ts'
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

/** A client as its users make it, which nobody listens to. */
type Maker = (port: number) => UserClient

function disconnecting<T extends UserClient & { disconnect(): unknown }>(client: T): T {
  closing.push(() => client.disconnect())
  return client
}

interface Connecting {
  connect(): Promise<unknown>
  destroy?(): unknown
  disconnect?(): unknown
}

/** It is connected after the store is made, which then listens. */
function connecting<T extends UserClient & Connecting>(client: T): T {
  setImmediate(() => void client.connect().catch(() => undefined))
  closing.push(async () => {
    try {
      await (client.destroy ? client.destroy() : client.disconnect?.())
    } catch {
      // It never connected.
    }
  })
  return client
}

const url = (port: number) => `redis://127.0.0.1:${port}`
const host = '127.0.0.1'

const makers: Readonly<Record<string, Maker>> = {
  'ioredis 6': (port) => disconnecting(new Redis(url(port))),
  'ioredis 5': (port) => disconnecting(new Redis5(url(port))),
  'node-redis 6': (port) => connecting(createClient({ url: url(port) })),
  'node-redis 5': (port) => connecting(createClient5({ url: url(port) })),
  'node-redis 4': (port) => connecting(createClient4({ url: url(port) })),
  'ioredis 6, Cluster': (port) => disconnecting(new Cluster([{ host, port }])),
  'ioredis 5, Cluster': (port) => disconnecting(new Cluster5([{ host, port }])),
  'node-redis 6, cluster': (port) => connecting(createCluster({ rootNodes: [{ url: url(port) }] })),
  'ioredis 6, Sentinel': (port) =>
    disconnecting(new Redis({ sentinels: [{ host, port }], name: 'mymaster' })),
  'ioredis 5, Sentinel': (port) =>
    disconnecting(new Redis5({ sentinels: [{ host, port }], name: 'mymaster' })),
  'node-redis 6, Sentinel': (port) =>
    connecting(createSentinel({ name: 'mymaster', sentinelRootNodes: [{ host, port }] })),
  'node-redis 5, Sentinel': (port) =>
    connecting(createSentinel5({ name: 'mymaster', sentinelRootNodes: [{ host, port }] })),
}

/** Asks until a failure says so, and gives it. */
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

describe.each(Object.entries(makers))('%s', (_name, make) => {
  it('says that nobody is there', async () => {
    const { cause, message } = await failureOf(
      make(nobody),
      /ECONNREFUSED|slots cache|root nodes|entinel/,
    )
    expect(cause).toBeInstanceOf(Error)
    expect(message).toMatch(/see that Redis runs/)
  })
})

const single = Object.entries(makers).filter(([name]) => /^\S+ \d$/.test(name))
const clusters = ['ioredis 6, Cluster', 'ioredis 5, Cluster', 'node-redis 6, cluster']

describe.each([...single, ...Object.entries(makers).filter(([name]) => clusters.includes(name))])(
  '%s',
  (_name, make) => {
    it('says that a password is missing, with the default deadline', async () => {
      const { cause, message } = await failureOf(make(locked.port), /NOAUTH/)
      expect(cause).toBeInstanceOf(Error)
      expect(message).toMatch(/username and password/)
    })
  },
)

it.each([
  ['ioredis', (secret: string) => disconnecting(new Redis(secret))],
  ['node-redis', (secret: string) => connecting(createClient({ url: secret }))],
])('tells no password of a URL: %s', async (_name, make) => {
  const client = make(`redis://:wrong-secret@127.0.0.1:${locked.port}`)
  const failure = await failureOf(client, /WRONGPASS|NOAUTH/)
  expect(inspect(failure, { depth: 9 })).not.toContain('wrong-secret')
})

it.each([
  ['node-redis 6', () => createClient()],
  ['node-redis 5', () => createClient5()],
  ['node-redis 4', () => createClient4()],
  ['a cluster of node-redis 6', () => createCluster({ rootNodes: [{ url: url(1) }] })],
  [
    'a sentinel of node-redis 5',
    () => createSentinel5({ name: 'm', sentinelRootNodes: [{ host, port: 1 }] }),
  ],
])('says that nobody has connected %s', async (_name, make) => {
  const failure = await failureOf(make(), /not connected/)
  expect(failure).toMatchObject({
    code: 'SLUICE_REDIS_CONNECTION',
    message: expect.stringContaining('await client.connect()'),
  })
})

it('names the reason of a retry that was given up, and of a missed deadline', () => {
  const last = new Error('connect ECONNREFUSED 127.0.0.1:6379')
  const failure = storeFailure(new Error('Reached the max retries per request limit'), last)
  expect(failure.message).toMatch(/max retries.*ECONNREFUSED.*see that Redis runs/)
  expect(failure.cause).toMatchObject({ message: last.message })
  const broken = new Error('cannot connect to rediss://app:hunter2@redis.example:6379/0')
  expect(inspect(storeFailure(broken), { depth: 9 })).not.toContain('hunter2')
})

it('writes one line to the console where nobody listens', async () => {
  vi.resetModules()
  const { createLimiter: create } = await import('@sluice/core')
  const { redisStore: open } = await import('@sluice/redis')
  const lines = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  const errors = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const client = disconnecting(new Redis(url(nobody)))
  const limiter = create({ store: open(client, { heartbeatMs: 0 }), limit: 5, window: '1m' })
  for (let i = 0; i < 5; i += 1) await limiter.consume('k')
  expect(errors).not.toHaveBeenCalled()
  expect(lines).toHaveBeenCalledTimes(1)
  expect(lines.mock.calls[0]?.[0]).toMatch(/^sluice: .*ECONNREFUSED.*see that Redis runs/)
})
