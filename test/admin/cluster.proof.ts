import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { describe, expect } from 'vitest'
import { clusterClients } from '../support/redis-clients.ts'
import { it } from '../support/redis-test.ts'
import { startAdmin } from './admin-server.ts'

it.for(['ioredis 6', 'node-redis 6'])(
  'on a Cluster the admin API changes limits, blocks, and unlocks everybody, by %s',
  async (library, { cluster }) => {
    const { client, connect, close } = clusterClients[library]?.(cluster.ports) ?? {}
    if (!client) throw new Error(`there is no ${library}`)
    await connect?.()
    const store = redisStore(client, { prefix: library.replace(' ', '-') })
    const { call, act, look, change, visit, policies } = await startAdmin({ store })
    const users = Array.from({ length: 40 }, (_, index) => `user-${index}`)
    for (const user of users) for (let i = 0; i < 6; i += 1) await visit(user)
    expect(await visit('user-7')).toBe(429)
    const { digest } = (await look('user user-7')).body
    expect((await act('reset', { key: { digest } })).body.found).toBe(true)
    expect(await visit('user-7')).toBe(200)
    expect((await act('block', { key: 'user user-7', for: '1h' })).status).toBe(200)
    expect(await visit('user-7')).toBe(429)
    expect((await act('unblock', { key: 'user user-7' })).body.found).toBe(true)
    const { body } = await act('unlock', { policy: 'burst' })
    expect(body).toMatchObject({ keys: users.length })
    for (const user of users) {
      const { policies: states } = (await look({ user })).body
      expect(states[0]).toMatchObject({ policy: 'burst', used: 0 })
    }
    const set = [{ policy: 'burst', field: 'limit', value: 1 }]
    expect((await change('changes', { set })).status).toBe(200)
    const { body: audit } = await call('GET', 'audit')
    expect(audit.records.map(({ action }: { action: string }) => action)).toContain('keys.unlock')
    expect([await visit('user-9'), await visit('user-9')]).toEqual([200, 429])
    await policies.close()
    await close?.()
  },
)

describe('bulk unlock of many keys', () => {
  it('continues from its cursor, and leaves other keys alone', async ({ client }) => {
    const store = redisStore(client, { prefix: 'abc' })
    const { act, policies } = await startAdmin({ store })
    const many = 50_000
    const [burst] = policies.policies
    if (!burst) throw new Error('there is no policy')
    const asked = Array.from({ length: many }, (_, index) => {
      return store.apply('charge', [{ policy: burst, key: `@user/${index}`, cost: 1, limit: 5 }])
    })
    await Promise.all(asked)
    const others = Array.from({ length: 2_000 }, (_, index) => `abc:{x}:burst-${index}:y`)
    await client.mset(Object.fromEntries(others.map((key) => [key, '1'])))
    let keys = 0
    let calls = 0
    let cursor: string | undefined
    do {
      const { body } = await act('unlock', { policy: 'burst', cursor })
      keys += body.keys
      calls += 1
      cursor = body.cursor
    } while (cursor !== undefined && calls < 100)
    expect(keys).toBe(many)
    expect(calls).toBeGreaterThan(1)
    expect(await client.exists(...others)).toBe(others.length)
  })

  it('is not offered if the client has a key prefix', async ({ redis }) => {
    const prefixed = new Redis(redis.url, { keyPrefix: 'app:' })
    const { call, act } = await startAdmin({ store: redisStore(prefixed) })
    expect((await call('GET', 'session')).body.features.unlock).toBe(false)
    expect((await act('unlock', { policy: 'burst' })).status).toBe(400)
    prefixed.disconnect()
  })
})
