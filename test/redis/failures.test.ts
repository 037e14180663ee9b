import { inspect } from 'node:util'
import { createLimiter, type ErrorCode, type StoreErrorEvent } from '@sluice/core'
import { redisStore, type UserClient } from '@sluice/redis'
import { Cluster, Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, afterEach, expect, it, vi } from 'vitest'
import { storeFailure } from '../../packages/redis/src/replies/store-failure.ts'
import { startTcpProxy } from '../faults/tcp-proxy.ts'
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

const locked = await startRedis({ args: ['--requirepass', 'right-password'] })
const nobody = await freePort()
const ending: (() => unknown)[] = []

afterEach(async () => {
  vi.restoreAllMocks()
  for (const end of ending.splice(0).reverse()) await end()
})
afterAll(() => locked.stop())

async function start(): Promise<RedisServer> {
  const server = await startRedis()
  ending.push(() => server.stop())
  return server
}

/** It is connected after the store is made, which then listens. */
function connecting({ client, connect, close }: RedisClient): UserClient {
  setImmediate(() => void connect().catch(() => undefined))
  ending.push(close)
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

/** Asks until a failure says so, and returns it. */
async function failureOf(client: UserClient, says: RegExp): Promise<StoreErrorEvent['error']> {
  const errors: StoreErrorEvent['error'][] = []
  const store = redisStore(client, { heartbeatMs: 0 })
  const observers = { onStoreError: ({ error }: StoreErrorEvent) => void errors.push(error) }
  const limiter = createLimiter({ store, limit: 5, window: '1m', observers })
  const found = () => errors.find(({ message }) => says.test(message))
  await until(`a failure that says ${says}`, async () => {
    await limiter.consume('k')
    return found() !== undefined
  }).catch(() => undefined)
  const failure = found()
  if (!failure) throw new Error(`only ${inspect(errors.map(({ message }) => message))}`)
  return failure
}

async function expectFailure(client: UserClient, advice: RegExp, code?: ErrorCode): Promise<void> {
  expect(await failureOf(client, advice)).toMatchObject({
    ...(code && { code }),
    cause: expect.any(Error),
  })
}

it.each([...single, ...clusters, ...sentinels])('%s says that nobody is there', (_name, make) =>
  expectFailure(
    connecting(make(nobody)),
    /(ECONNREFUSED|slots cache|root nodes|entinel).*check that Redis is running/,
  ),
)

it.each([...single, ...clusters])(
  '%s says that a password is missing, with the default deadline',
  (_name, make) => expectFailure(connecting(make(locked.port)), /NOAUTH.*username and password/),
)

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
  expect(failure.message).toMatch(/max retries.*ECONNREFUSED.*check that Redis is running/)
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
  expect(lines.mock.calls[0]?.[0]).toMatch(/^sluice: .*ECONNREFUSED.*check that Redis is running/)
})

it('names a user who may not run scripts', async () => {
  const server = await start()
  await server.cli('ACL', 'SETUSER', 'app', 'on', '>word', '~*', '+@all', '-@scripting')
  const client = new Redis(server.url, { username: 'app', password: 'word' })
  ending.push(() => client.disconnect())
  await expectFailure(client, /EVALSHA/, 'SLUICE_REDIS_PERMISSION')
})

it.each([
  ['WRONGPASS invalid username-password pair or user is disabled.', 'SLUICE_REDIS_AUTH'],
  ['Socket closed unexpectedly', 'SLUICE_REDIS_CONNECTION'],
  ['Connection is closed.', 'SLUICE_REDIS_CONNECTION'],
  ["ERR unknown command 'EVALSHA', with args beginning with: 'abc'", 'SLUICE_REDIS_PERMISSION'],
  ["Stream isn't writeable and enableOfflineQueue options is false", 'SLUICE_REDIS_CONNECTION'],
  ['The client is offline', 'SLUICE_REDIS_CONNECTION'],
  ['Command timed out', 'SLUICE_REDIS_CONNECTION'],
  ['Protocol error, got "H" as reply type byte', 'SLUICE_REDIS_CONNECTION'],
  ['getaddrinfo EAI_AGAIN redis', 'SLUICE_REDIS_CONNECTION'],
  ['All sentinels are unreachable. Retrying from scratch after 10ms.', 'SLUICE_REDIS_CONNECTION'],
  ['ERR max number of clients reached', 'SLUICE_REDIS_BUSY'],
  ['ERR something else', 'SLUICE_STORE_FAILED'],
])('knows %s', (reason, code) => {
  const cause = new Error(reason)
  expect(storeFailure(cause)).toMatchObject({ code, cause: expect.any(Error) })
})

class TimeoutError extends Error {}
const refused = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })

it.each([
  ['code', refused, 'ECONNREFUSED; check that Redis is running'],
  ['class', new TimeoutError(), 'TimeoutError'],
])('names an error without a message by its %s', (_what, cause, text) => {
  const message = expect.stringContaining(text)
  expect(storeFailure(cause)).toMatchObject({ code: 'SLUICE_REDIS_CONNECTION', message })
})

it.each([
  ['ioredis', () => new Redis({ lazyConnect: true })],
  ['a Cluster of ioredis', () => new Cluster([{ port: 1 }], { lazyConnect: true })],
  ['node-redis', () => createClient()],
])('listens for the errors of a client nobody listens to: %s', (_, make) => {
  const client = make()
  redisStore(client)
  expect(client.listenerCount('error')).toBe(1)
})

it('listens once, beside a listener of its owner, however many stores there are', () => {
  const client = new Redis({ lazyConnect: true })
  client.on('error', () => undefined)
  redisStore(client)
  redisStore(client)
  expect(client.listenerCount('error')).toBe(2)
})

it('gives units back once, though the client sends the refund again', async () => {
  const server = await start()
  const proxy = await startTcpProxy(server.port)
  ending.push(() => proxy.close())
  const client = new Redis(`redis://127.0.0.1:${proxy.port}`, { retryStrategy: () => 20 })
  ending.push(() => client.disconnect())
  const limiter = createLimiter({
    store: redisStore(client, { heartbeatMs: 0 }),
    algorithm: 'fixed-window',
    limit: 10,
    window: '1h',
    deadlineMs: 30_000,
  })
  const taken = await Promise.all(Array.from({ length: 6 }, () => limiter.consume('k')))
  const left = async () => (await limiter.peek('k')).remaining
  for (const [given, decision] of taken.slice(0, 3).entries()) {
    client.once('close', () => proxy.disturb({}))
    proxy.disturb({ cutEvery: 1 })
    expect(await limiter.refund(decision)).toBe(true)
    expect(await left()).toBe(5 + given)
  }
  const refunds = await Promise.all(taken.slice(2).map((each) => limiter.refund(each)))
  expect(refunds).toEqual([false, true, true, true])
  expect(await left()).toBe(10)
  const [senderKey = ''] = await client.keys('sluice:*:sender:*')
  expect(await client.pttl(senderKey)).toBeGreaterThan(3_500_000)
})

it.each([
  ['ioredis', (url: string) => new Redis(url, { retryStrategy: () => 20 })],
  ['node-redis', (url: string) => createClient({ url, socket: { reconnectStrategy: 20 } })],
])('asks Redis again as soon as the client is connected again: %s', async (_, make) => {
  const server = await start()
  const proxy = await startTcpProxy(server.port)
  ending.push(() => proxy.close())
  const client = make(`redis://127.0.0.1:${proxy.port}`)
  if (!(client instanceof Redis)) await client.connect()
  ending.push(() => (client instanceof Redis ? client.disconnect() : client.destroy()))
  const opened: number[] = []
  const limiter = createLimiter({
    store: redisStore(client, { heartbeatMs: 0 }),
    limit: 1_000,
    window: '1m',
    observers: {
      onStoreError: () => undefined,
      onResilience: (event) => {
        if (event.type === 'breaker') opened.push(event.retryInMs)
      },
    },
  })
  await limiter.consume('k')
  await proxy.refuse()
  // Pauses grow with each probe that fails: after the third one none is shorter than a second.
  await until('it has probed', async () => {
    await limiter.consume('k')
    return opened.some((retryInMs) => retryInMs > 1_000)
  })
  const connected = new Promise((resolve) => client.once('ready', resolve))
  await proxy.accept()
  await connected
  const probe = limiter.consume('k')
  expect(limiter.storeHealth().breaker).toBe('half-open')
  await probe
})
