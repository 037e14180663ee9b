import { createLimiter, unlimited } from '@sluice/core'
import { type RedisStoreOptions, redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'

const client = new Redis({ lazyConnect: true })

describe('redisStore(client)', () => {
  it.each([
    ['undefined', undefined],
    ['null', null],
    ['a URL', 'redis://localhost'],
    ['options', { host: 'localhost', port: 6379 }],
    ['a class', Redis],
  ])('refuses %s, and says what it takes', (_what, wrong) => {
    const make = () => Reflect.apply(redisStore, undefined, [wrong])
    expect(make).toThrow(expect.objectContaining({ code: 'SLUICE_CLIENT_INVALID' }))
    expect(make).toThrow(/new Redis\(url\)/)
  })

  it('takes a client whose class was renamed or wrapped', () => {
    class Wrapped extends Redis {}
    expect(() => redisStore(new Wrapped({ lazyConnect: true }))).not.toThrow()
    expect(() => redisStore(new Proxy(client, {}))).not.toThrow()
  })
})

describe('options of redisStore', () => {
  it.each([
    [{ prefix: '' }, 'prefix must be'],
    [{ prefix: 'a b' }, "but is 'a b'"],
    [{ prefix: '{app}:' }, 'no braces'],
    [{ prefix: 'x'.repeat(65) }, 'prefix must be'],
    [{ secret: '' }, 'secret must be a string of at least 16 characters, but is empty'],
    [{ secret: 42 }, 'but is a number'],
    [{ digest: 'no' }, 'digest must be'],
    [{ encoding: 'zset' }, "one of 'packed', 'sorted-set'"],
    [{ clock: 'redis' }, "one of 'server', 'client'"],
    [{ batch: 5 }, 'batch must be a plain object'],
    [{ batch: { size: 5 } }, "no option 'size'"],
    [{ batch: { maxKeys: 0 } }, 'batch.maxKeys must be a whole number from 1 to 4000, but is 0'],
    [{ batch: { maxBytes: 1_023 } }, 'batch.maxBytes must be a whole number from 1024 to 1048576'],
    [{ batch: { maxInFlight: 65 } }, 'batch.maxInFlight must be a whole number from 1 to 64'],
    [{ denialTtlMs: -1 }, 'denialTtlMs must be a whole number from 0 to 60000, but is -1'],
    [{ observers: { onInvalid: true } }, 'observers.onInvalid must be'],
    [{ keyPrefix: 'x' }, "no option 'keyPrefix'"],
    [null, 'redisStore must be a plain object'],
  ])('%j is refused', (options, message) => {
    expect(() => redisStore(client, options as RedisStoreOptions)).toThrow(message)
  })

  it('takes limits of 10,000 at most for logs in sorted sets', () => {
    const store = redisStore(client, { encoding: 'sorted-set' })
    const window = '1h'
    expect(() => createLimiter({ store, limit: 10_001, window })).toThrow(
      "limit of 'default' (10001) must be at most 10000 with algorithm 'sliding-log' on this store",
    )
    expect(() => createLimiter({ store, limit: 10_000, window })).not.toThrow()
    expect(() => createLimiter({ store, limit: unlimited, window })).not.toThrow()
    const algorithm = 'token-bucket'
    expect(() => createLimiter({ store, limit: 10_001, window, algorithm })).not.toThrow()
    expect(() => createLimiter({ store: redisStore(client), limit: 10_001, window })).not.toThrow()
  })

  it('never shows a secret in a message', () => {
    expect(() =>
      Reflect.apply(redisStore, undefined, [client, { secret: ['hunter2'] }]),
    ).not.toThrow(/hunter2/)
  })
})
