import type { Duration, Limiter, PolicyOptions } from '@sluice/core'
import { type RedisStoreOptions, redisStore } from '@sluice/redis'
import type { Redis } from 'ioredis'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { hashTags, slotOf as slotOfKey } from '../../packages/redis/src/keys/hash-tags.ts'
import { checkOf, patientLimiter } from '../support/patient-limiter.ts'
import { redisOfFile } from '../support/redis-test.ts'

const { client } = await redisOfFile()

afterEach(async () => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  await client.flushall()
})

async function keysOf(
  identities: readonly string[],
  options: RedisStoreOptions = {},
  policy: PolicyOptions = { name: 'p', limit: 5, window: '1h' },
): Promise<string[]> {
  const store = redisStore(client, { heartbeatMs: 0, ...options })
  const limiter = patientLimiter({ store, policies: [policy] })
  for (const identity of identities) await limiter.consume(identity)
  return client.keys('*')
}

describe('a key', () => {
  it('has a prefix, a hash tag, the policy with its shape, and a digest of 128 bits', async () => {
    const [key] = await keysOf(['user:42'])
    expect(key).toMatch(/^sluice:\{[0-9a-z]{3,4}\}:p~log-3600000:[A-Za-z0-9_-]{22}$/)
  })

  it('has the same length for the longest identity as for a letter, and contains no secret', async () => {
    const secret = 'sk_live_51HxQ'
    const keys = await keysOf(['a', secret, secret.repeat(1_200)])
    expect(new Set(keys.map((key) => key.replace(/\{\w+\}/, '{}').length)).size).toBe(1)
    expect(keys.join()).not.toContain('sk_live')
  })

  it('holds a block with a time to live, and is written by no request that is allowed', async () => {
    const store = redisStore(client, { heartbeatMs: 0 })
    const penalty = { name: 'bans', after: 10, within: '1m', for: '5m' } as const
    const limiter = patientLimiter({ store, limit: 5, window: '1h', penalty })
    await limiter.consume('k')
    expect(await client.keys('*')).toHaveLength(1)
    await limiter.block('k', '1m')
    const [key = ''] = await client.keys('*:bans~penalty:*')
    const ttl = await client.pttl(key)
    expect(ttl).toBeGreaterThan(59_000)
    expect(ttl).toBeLessThanOrEqual(70_000)
    await limiter.reset('k')
    expect(await client.keys('*:bans~penalty:*')).toEqual([])
  })

  it('depends on the secret', async () => {
    for (const options of [{}, { secret: 'one' }, { secret: 'two' }]) {
      await keysOf(['203.0.113.9'], options)
    }
    expect(new Set(await client.keys('*')).size).toBe(3)
  })

  it('is readable and escaped on request', async () => {
    const [key] = await keysOf(['user:{42}*é'], { digest: false, prefix: 'my.app' })
    expect(key).toMatch(/^my\.app:\{\w+\}:p~log-3600000:user%003a%007b42%007d%002a%00e9$/)
  })

  it('of a prefix with colons is no key of another prefix', async () => {
    for (const prefix of ['app', 'app:', 'app:login', 'app:login:', ':', '::']) {
      for (const name of ['p', 'login', 'login:p']) {
        await keysOf(['a', ':a'], { prefix, digest: false }, { name, limit: 5, window: '1h' })
      }
    }
    const keys = await client.keys('*')
    expect(keys).toHaveLength(6 * 3 * 2)
    expect(keys.filter((key) => /^app:login:\{\w+\}:/.test(key))).toHaveLength(3 * 2)
  })

  it('escapes the name of a policy', async () => {
    const [key] = await keysOf(['a'], {}, { name: 'per user: {v2}', limit: 1, window: '1m' })
    expect(key).toContain(':per%20user%3a%20%7bv2%7d~log-60000:')
  })

  it('is under one of 64 tags whose slots are evenly spaced', () => {
    expect(hashTags).toHaveLength(64)
    const slots = hashTags.map((_tag, index) => 256 * index + 128)
    expect(hashTags.map(slotOf)).toEqual(slots)
    expect(hashTags.map((tag) => slotOfKey(`my.app:{${tag}}:p~log-1:x`))).toEqual(slots)
    expect(slotOfKey('my.app:{another}:p')).toBe(-1)
  })

  it('tells the windows of one name apart, and names apart for the scan that forgets a policy', async () => {
    const other = client.duplicate()
    const prefix = 'forgotten'
    const limit = (redis: Redis, name: string, window: Duration) => {
      const store = redisStore(redis, { prefix, heartbeatMs: 0 })
      return patientLimiter({ store, name, limit: 5, window })
    }
    const [short, long] = [limit(client, 'login', '1h'), limit(other, 'login', '2h')]
    const others = ['login-2', 'my login', 'x:login'].map((name) => limit(client, name, '1h'))
    for (const limiter of [short, long, ...others]) await limiter.consume('ada')
    const left = async (limiter: Limiter) => (await limiter.peek('ada')).outcomes[0]?.remaining
    expect(await Promise.all([short, long].map(left))).toEqual([4, 4])

    const [, keys] = await client.scan(0, 'MATCH', `${prefix}:{*}:login~*`, 'COUNT', 100_000)
    expect(keys).toHaveLength(2)
    await client.unlink(keys)
    expect(await Promise.all([short, long, ...others].map(left))).toEqual([5, 5, 4, 4, 4])
    other.disconnect()
  })

  it('of a sorted set is another one', async () => {
    const [key] = await keysOf(['user:42'], { encoding: 'sorted-set' })
    expect(key).toMatch(/^sluice:\{\w+\}:p~zset-3600000:/)
  })

  it('is forgotten with all of its policy, and units that processes hold stay held', async () => {
    const store = redisStore(client, { heartbeatMs: 0 })
    const quota = { limit: 1_000, window: '1h' } as const
    const policies = [
      { name: 'hot', prefetch: '1m', ...quota } as const,
      { name: 'hot-2', ...quota },
    ]
    const limiter = patientLimiter({ store, policies })
    for (let i = 0; i < 30; i += 1) await limiter.consume('k')
    const { policy } = checkOf(limiter.policies[0])
    const forget = (dryRun: boolean) => store.keys?.forgetPolicy?.(policy, { dryRun })
    const held = await client.keys('*~')
    expect(held).toHaveLength(1)
    expect(await forget(true)).toEqual({ keys: 1 })
    expect(await forget(false)).toEqual({ keys: 1 })
    expect(await forget(false)).toEqual({ keys: 0 })
    const left = await client.keys('sluice:{*}:*')
    expect(left.map((key) => key.split(':')[2]).sort()).toEqual([
      'hot-2~log-3600000',
      'hot~log-3600000',
    ])
    expect(left).toEqual(expect.arrayContaining(held))
  })

  it('has one tag for all policies of an identity', async () => {
    const policies = ['a', 'b', 'c'].map((name) => ({ name, limit: 5, window: '1h' }) as const)
    const store = redisStore(client, { heartbeatMs: 0 })
    await patientLimiter({ store, policies }).consume('user:42')
    const found = await client.keys('*')
    expect(found).toHaveLength(3)
    expect(new Set(found.map((key) => /\{(\w+)\}/.exec(key)?.[1])).size).toBe(1)
  })
})

it('redisStore in production warns once that identities can be guessed when it has no secret', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  vi.stubEnv('NODE_ENV', 'production')
  redisStore(client, { secret: 'sixteen letters!' })
  expect(warn).not.toHaveBeenCalled()
  redisStore(client, { heartbeatMs: 0 })
  redisStore(client, { heartbeatMs: 0 })
  expect(warn).toHaveBeenCalledTimes(1)
  expect(warn.mock.calls[0]?.[0]).toMatch(/secret/)
})

/** The slot that Redis Cluster gives a hash tag: CRC16 (XMODEM) modulo 16384. */
function slotOf(tag: string): number {
  let crc = 0
  for (const char of tag) {
    crc ^= char.charCodeAt(0) << 8
    for (let bit = 0; bit < 8; bit += 1)
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff
  }
  return crc % 16_384
}
