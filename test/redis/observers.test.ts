import type { DecisionEvent, StoreCall } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { redisOfFile } from '../support/redis-test.ts'

const { client: redis } = await redisOfFile()

function listening() {
  const decisions: DecisionEvent[] = []
  const calls: StoreCall[] = []
  const observer = {
    onDecision: (event: DecisionEvent) => void decisions.push(event),
    onStoreCall: (call: StoreCall) => void calls.push(call),
  }
  return { decisions, calls, observer }
}

describe('observers of limiters on Redis', () => {
  it('learn who answered: Redis, or what this process knows of a denial', async () => {
    const { decisions, observer } = listening()
    const store = redisStore(redis)
    const limiter = patientLimiter({ store, limit: 1, window: '1m', observers: [observer] })
    for (let i = 0; i < 3; i += 1) await limiter.consume('a')
    const answeredBy = ['redis', 'redis', 'denial-cache']
    expect(decisions).toMatchObject(answeredBy.map((each) => ({ answeredBy: each })))
  })

  it('are told once of each call, with the checks of all requests in it', async () => {
    const { calls, observer } = listening()
    const store = redisStore(redis)
    const options = { store, window: '1m', observers: [observer] } as const
    const first = patientLimiter({ ...options, limit: 10 })
    const second = patientLimiter({ ...options, limit: 20 })
    await first.consume('warm')
    await Promise.all([first.consume('b'), second.consume('b')])
    expect(calls.reduce((sum, { requests }) => sum + requests, 0)).toBe(3)
    for (const call of calls) {
      expect(call).toMatchObject({ failed: false, checks: call.requests })
      expect(call.durationMs).toBeGreaterThan(0)
      expect(Math.abs(call.startedAt - Date.now())).toBeLessThan(60_000)
    }
  })

  it('are told of a call that fails', async () => {
    const { calls, observer } = listening()
    const client = { defineCommand: () => undefined, call: () => Promise.reject(new Error('gone')) }
    const store = redisStore(client, { heartbeatMs: 0 })
    const own = { observers: [observer, { onStoreError: () => undefined }] }
    await createLimiter({ store, limit: 1, window: '1m', ...own }).consume('a')
    expect(calls).toMatchObject([{ failed: true, requests: 1 }])
  })

  it.each([
    ['plain', {}],
    ['with a secret', { secret: 'one of the fleet' }],
  ])('find the digest of the event in the keys of Redis: %s', async (prefix, options) => {
    const { decisions, observer } = listening()
    const store = redisStore(redis, { prefix: prefix.replaceAll(' ', '-'), ...options })
    const limiter = patientLimiter({ store, limit: 1, window: '1m', observers: [observer] })
    await limiter.consume('user:42')
    const keys = await redis.keys(`${prefix.replaceAll(' ', '-')}:*:${decisions[0]?.digest}`)
    expect(keys).toHaveLength(1)
  })

  it('get a digest although the keys in Redis are readable', async () => {
    const { decisions, observer } = listening()
    const store = redisStore(redis, { digest: false })
    const limiter = patientLimiter({ store, limit: 1, window: '1m', observers: [observer] })
    await limiter.consume('user:42')
    expect(decisions[0]?.digest).toMatch(/^[\w-]{22}$/)
  })
})
