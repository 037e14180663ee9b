import type { InvalidEvent, PolicyOptions } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { beforeEach, describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { redisOfFile } from '../support/redis-test.ts'

const { client: redis } = await redisOfFile()

beforeEach(async () => void (await redis.flushall()))

const log = (name: string, limit = 10): PolicyOptions => ({ name, limit, window: '1h' })

describe('a list of policies', () => {
  it.each([6, 7, 12])(
    'of %i policies counts each of them once, at every request of a call',
    async (width) => {
      const limiter = patientLimiter({
        store: redisStore(redis, { heartbeatMs: 0 }),
        policies: Array.from({ length: width }, (_, index) => log(`p${index}`, 10 + index)),
      })
      const asked = Array.from({ length: 12 }, (_, index) => limiter.consume(`k${index % 3}`))
      for (const [index, { allowed, outcomes }] of (await Promise.all(asked)).entries()) {
        const taken = 1 + Math.floor(index / 3)
        expect(allowed).toBe(true)
        expect(outcomes.map(({ remaining }) => remaining)).toEqual(
          outcomes.map((_, place) => 10 + place - taken),
        )
      }
    },
  )

  it('counts a foreign key as empty, and no other policy twice', async () => {
    const invalid: InvalidEvent[] = []
    const observers = { onInvalid: (event: InvalidEvent) => void invalid.push(event) }
    const store = redisStore(redis, { heartbeatMs: 0, digest: false, observers })
    const limiter = patientLimiter({ store, policies: [log('first'), log('second')] })
    await limiter.consume('k')
    const [key = ''] = (await redis.keys('*')).filter((name) => name.includes('second'))
    await redis.flushall()
    await redis.hset(key, 'field', 'value')
    const { outcomes } = await limiter.consume('k')
    expect(outcomes.map(({ remaining }) => remaining)).toEqual([9, 9])
    expect(invalid.map(({ code }) => code)).toEqual(['SLUICE_STATE_UNREADABLE'])
  })

  it('takes the short way while a policy that counts denials has none to count', async () => {
    const limiter = patientLimiter({
      store: redisStore(redis, { heartbeatMs: 0, denialTtlMs: 0 }),
      policies: [log('few', 3), { ...log('all'), countDenied: true }],
    })
    await redis.config('RESETSTAT')
    for (let unit = 1; unit <= 5; unit += 1) {
      const { allowed, outcomes } = await limiter.consume('k')
      expect(allowed).toBe(unit <= 3)
      expect(outcomes.map(({ remaining }) => remaining)).toEqual([Math.max(0, 3 - unit), 10 - unit])
      // Only the whole algorithms read keys one by one.
      if (unit === 3) expect(await redis.info('commandstats')).not.toMatch(/cmdstat_get:/)
    }
  })

  it('loads a bounded number of scripts, whatever lists a store is asked for', async () => {
    await redis.script('FLUSH')
    const store = redisStore(redis, { heartbeatMs: 0 })
    const kinds = ['sliding-log', 'fixed-window', 'token-bucket'] as const
    const lists = kinds.flatMap((a) => kinds.flatMap((b) => kinds.map((c) => [a, b, c])))
    expect(lists).toHaveLength(27)
    for (const [number, list] of lists.entries()) {
      const policies = list.map((algorithm, at) => ({ ...log(`p${number}-${at}`), algorithm }))
      const limiter = patientLimiter({ store, policies })
      const { outcomes } = await limiter.consume('k')
      expect(outcomes.map(({ remaining }) => remaining)).toEqual([9, 9, 9])
    }
    expect(await redis.info('memory')).toContain('number_of_cached_scripts:21\r\n')
  })
})
