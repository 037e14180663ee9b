import { type RedisStoreOptions, redisStore } from '@sluice/redis'
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
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
    expect(() => Reflect.apply(redisStore, undefined, [wrong])).toThrow(
      expect.objectContaining({
        code: 'SLUICE_CLIENT_INVALID',
        message: expect.stringMatching(/new Redis\(url\)/),
      }),
    )
  })

  it('refuses Cluster clients for now, and says so', () => {
    const clusters = [
      new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true }),
      createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] }),
    ]
    for (const cluster of clusters) {
      expect(() => Reflect.apply(redisStore, undefined, [cluster])).toThrow(/Cluster client/)
    }
  })

  it('takes a client whose class was renamed or wrapped', () => {
    class Wrapped extends Redis {}
    expect(() => redisStore(new Wrapped({ lazyConnect: true }))).not.toThrow()
    expect(() => redisStore(new Proxy(client, {}))).not.toThrow()
    expect(() => redisStore(createClient())).not.toThrow()
  })
})

describe('options of redisStore', () => {
  it.each([
    [{ prefix: '' }, 'prefix must be'],
    [{ prefix: 'a:b' }, "but is 'a:b'"],
    [{ prefix: 'x'.repeat(65) }, 'prefix must be'],
    [{ secret: '' }, 'secret must be'],
    [{ secret: 42 }, 'secret must be'],
    [{ digest: 'no' }, 'digest must be'],
    [{ encoding: 'zset' }, "one of 'packed', 'sorted-set'"],
    [{ clock: 'redis' }, "one of 'server', 'client'"],
    [{ onInvalid: true }, 'onInvalid must be'],
    [{ keyPrefix: 'x' }, "no option 'keyPrefix'"],
    [null, 'redisStore must be an object'],
  ])('%j is refused', (options, message) => {
    expect(() => redisStore(client, options as RedisStoreOptions)).toThrow(message)
  })

  it('never shows a secret in a message', () => {
    expect(() =>
      Reflect.apply(redisStore, undefined, [client, { secret: ['hunter2'] }]),
    ).not.toThrow(/hunter2/)
  })
})
