import { createLimiter, digestOf, memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { redisOfFile } from '../support/redis-test.ts'
import { storeThrough } from '../support/store-through.ts'

const { client, redis: server } = await redisOfFile()

const stores: readonly (readonly [string, () => Store])[] = [
  ['memory', () => memoryStore()],
  ['Redis', () => redisStore(client, { prefix: 'd1' })],
  ['Redis with a secret', () => redisStore(client, { prefix: 'd2', secret: 's' })],
]
const penalty = { name: 'ban', after: 'never' } as const
const policy = { name: 'api', limit: 2, window: '1m' } as const

describe.each(stores)('actions by digest: %s', (_name, open) => {
  it('peek, reset, block and unblock reach the key that it stands for, and tell of none', async () => {
    const store = open()
    const limiter = patientLimiter({ ...policy, penalty, store })
    const digest = digestOf('user:42', store)
    for (let i = 0; i < 3; i += 1) await limiter.consume('user:42')
    expect((await limiter.peek({ digest })).allowed).toBe(false)
    expect(await limiter.reset({ digest })).toBe(true)
    // At once, although this process has just denied the key.
    expect((await limiter.consume('user:42')).allowed).toBe(true)

    expect(await limiter.block({ digest }, '1h')).toBe(false)
    expect((await limiter.consume('user:42')).allowed).toBe(false)
    expect((await limiter.consume('user:43')).allowed).toBe(true)
    expect(await limiter.unblock({ digest })).toBe(true)
    expect((await limiter.consume('user:42')).outcomes[0]?.remaining).toBe(0)

    const nobody = { digest: digestOf('nobody', store) }
    expect(await limiter.reset(nobody)).toBe(false)
    expect(await limiter.unblock(nobody)).toBe(false)
    expect((await limiter.peek(nobody)).outcomes[0]?.remaining).toBe(2)
    await store.close?.()
  })

  it.each([
    [{ digest: 'short' }, /digest must be the 22 characters/],
    [{ digest: 7 }, /digest must be the 22 characters/],
    [{ key: 'a' }, /the key/],
  ])('refuse %j', async (key, message) => {
    const store = open()
    const limiter = patientLimiter({ ...policy, store })
    await expect(Reflect.apply(limiter.reset, undefined, [key])).rejects.toThrow(message)
    await expect(Reflect.apply(limiter.consume, undefined, [key])).rejects.toThrow()
    await store.close?.()
  })
})

describe('actions by digest', () => {
  const digest = digestOf('user:42', {})

  it('lift a block in the fallback of this process, too', async () => {
    const store = redisStore(client, { prefix: 'd3', secret: 's' })
    const observers = { onStoreError: () => undefined }
    const limiter = createLimiter({ ...policy, penalty, store, observers })
    await limiter.block('user:42', '1h')
    expect((await limiter.consume('user:42')).allowed).toBe(false)
    await limiter.unblock({ digest: digestOf('user:42', store) })
    server.pause()
    const decision = await limiter.consume('user:42')
    server.resume()
    expect(decision).toMatchObject({ source: 'fallback', allowed: true })
    await store.close()
  })

  it('need a key that the memory store holds, to block it', async () => {
    const limiter = createLimiter({ ...policy, penalty })
    await expect(limiter.block({ digest }, '1h')).rejects.toThrow(/holds no key with this digest/)
  })

  it('find one among thousands in memory', async () => {
    const limiter = createLimiter(policy)
    for (let i = 0; i < 3_000; i += 1) await limiter.consume(`user:${i}`)
    expect(await limiter.reset({ digest })).toBe(true)
    expect((await limiter.peek('user:42')).outcomes[0]?.remaining).toBe(2)
  })

  it('are refused by a store that cannot find keys by them', async () => {
    const readable = redisStore(client, { prefix: 'd4', digest: false })
    for (const store of [readable, storeThrough(memoryStore(), () => undefined)]) {
      const limiter = createLimiter({ ...policy, store })
      await expect(limiter.reset({ digest })).rejects.toMatchObject({ code: 'SLUICE_KEY_INVALID' })
    }
    await readable.close()
  })
})
