import { createLimiter } from '@sluice/core'
import type { GuardFields, Passage } from '@sluice/http'
import { type RedisStore, redisStore } from '@sluice/redis'
import { describe, expect } from 'vitest'
import { exchange, guardOf } from '../http/exchange.ts'
import { it, redisOfFile } from '../support/redis-test.ts'

const { client } = await redisOfFile()

let opened = 0

function openStore(): RedisStore {
  opened += 1
  return redisStore(client, { prefix: `settlement${opened}`, heartbeatMs: 0, denialTtlMs: 0 })
}

const policy = { name: 'posts', limit: 5, window: '1h', algorithm: 'fixed-window' } as const

/** A guard on Redis, one request of it, and what its policy has left. */
function guarded(options: GuardFields<object>, store: RedisStore = openStore()) {
  const patient = { store, deadlineMs: 30_000 }
  const quota = options.policies ? {} : policy
  const guard = guardOf({ ...quota, key: () => 'ada', ...patient, ...options })
  const limiter = createLimiter({ ...policy, ...patient })
  async function request(view: Parameters<typeof exchange>[0] = {}) {
    const asked = exchange(view)
    const passage: Passage = await guard.check(asked)
    if (passage.hold) asked.settleAtEnd(passage.hold)
    return { passage, end: asked.end, allowed: passage.verdict.action === 'pass' }
  }
  return {
    request,
    used: async () => 5 - ((await limiter.peek('ada')).outcomes[0]?.remaining ?? 0),
  }
}

const withKey = (key: string) => ({
  method: 'POST',
  header: (name: string) => (name === 'idempotency-key' ? key : undefined),
})

describe('a guard on Redis', () => {
  it('charges a retry nothing, and so many that come at once as may be free', async () => {
    const { request, used } = guarded({ idempotencyKey: true })
    expect((await request(withKey('k'))).allowed).toBe(true)
    await used()
    const retries = await Promise.all(Array.from({ length: 50 }, () => request(withKey('k'))))

    expect(retries.filter(({ allowed }) => allowed)).toHaveLength(3 + 4)
    expect(await used()).toBe(5)
  })
})

it('a guard on a Cluster charges a retry nothing, whose mark lives on another node', async ({
  clusterClient,
}) => {
  const store = redisStore(clusterClient, { prefix: 'retries', heartbeatMs: 0 })
  const { request, used } = guarded({ idempotencyKey: true }, store)
  for (let i = 1; i <= 4; i += 1) {
    await request(withKey(`k${i}`))
    await used()
    for (let retry = 1; retry <= 3; retry += 1) {
      expect((await request(withKey(`k${i}`))).allowed).toBe(true)
    }
  }
  expect(await used()).toBe(4)
  expect((await request(withKey('k4'))).allowed).toBe(true)

  expect(await used()).toBe(5)
  expect((await request(withKey('k4'))).allowed).toBe(false)
})
