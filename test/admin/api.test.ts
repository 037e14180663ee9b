import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { startAdmin } from './admin-server.ts'

describe('the admin API on Redis', () => {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    server = await startRedis()
    client = new Redis(server.url)
  })
  afterAll(async () => {
    client.disconnect()
    await server.stop()
  })

  it('shows the policies, and a limit that is changed is in force for the next request', async () => {
    const { call, visit } = await startAdmin({ store: redisStore(client) })
    const before = await call('GET', 'policies')
    expect(before.status).toBe(200)
    expect(before.body.policies[0]).toMatchObject({ name: 'burst', limit: 5, routes: ['*'] })
    for (let i = 0; i < 5; i += 1) expect(await visit('ada')).toBe(200)
    expect(await visit('ada')).toBe(429)
    const changed = await call('POST', 'policies/changes', {
      headers: { 'if-match': before.etag ?? '' },
      body: { set: [{ policy: 'burst', field: 'limit', value: 6 }], reason: 'a test' },
    })
    expect(changed.status).toBe(200)
    expect(changed.body.differences).toEqual([
      { path: 'policies.burst.limit', from: 5, to: 6, newCount: false },
    ])
    expect([await visit('ada'), await visit('ada')]).toEqual([200, 429])
  })
})
