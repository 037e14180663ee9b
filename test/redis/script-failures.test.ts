import type { PolicyOptions, ResilienceEvent, StoreErrorEvent } from '@sluice/core'
import { type RedisStore, redisStore } from '@sluice/redis'
import { expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { redisOfFile } from '../support/redis-test.ts'

const { client, redis: server } = await redisOfFile()

/** A store whose calls are changed on their way to Redis. */
function storeThrough(change: (args: readonly unknown[]) => readonly unknown[]): RedisStore {
  const changing = new Proxy(client, {
    get(target, property) {
      if (property !== 'call') return Reflect.get(target, property)
      return (...args: unknown[]) => Reflect.apply(target.call, target, change(args))
    },
  })
  return redisStore(changing, { heartbeatMs: 0, denialTtlMs: 0, batch: { maxInFlight: 1 } })
}

function storeThatSays(reply: string): RedisStore {
  return storeThrough(() => ['EVAL', 'return redis.error_reply(ARGV[1])', '0', reply])
}

function observed(store: RedisStore, policy: PolicyOptions = { limit: 10, window: '1m' }) {
  const errors: StoreErrorEvent[] = []
  const events: ResilienceEvent[] = []
  const limiter = patientLimiter({
    store,
    policies: [policy],
    observers: {
      onStoreError: (event) => void errors.push(event),
      onResilience: (event) => void events.push(event),
    },
  })
  return { limiter, errors, events }
}

it.each([
  'WRONGTYPE Operation against a key holding the wrong kind of value',
  'ERR user_script:12: attempt to perform arithmetic on a nil value script: abc, on @user_script:12.',
])('stays with a store that says: %s', async (reply) => {
  const { limiter, errors, events } = observed(storeThatSays(reply))
  for (let i = 0; i < 30; i += 1) {
    expect(await limiter.consume('k')).toMatchObject({ source: 'fallback' })
  }
  expect(limiter.storeHealth()).toMatchObject({ breaker: 'closed', isAway: false })
  expect(events).toEqual([])
  // Each is asked for, and each failure told.
  expect(errors).toHaveLength(30)
  expect(errors[0]).toMatchObject({ op: 'consume', error: { code: 'SLUICE_STORE_CHECK' } })
})

it.each([
  ['LOADING Redis is loading the dataset in memory', 'SLUICE_REDIS_BUSY'],
  ["READONLY You can't write against a read only replica.", 'SLUICE_REDIS_READONLY'],
  ['OOM command not allowed. script: abc, on @user_script:3.', 'SLUICE_REDIS_MEMORY'],
  ['MISCONF Redis is configured to save RDB snapshots. on @user_script:3.', 'SLUICE_REDIS_BUSY'],
  ['ERR Error running script (call to f_a): @user_script:3: -MISCONF', 'SLUICE_REDIS_BUSY'],
  ['BUSY Redis is busy running a script', 'SLUICE_REDIS_BUSY'],
  ['NOREPLICAS Not enough good replicas to write. on @user_script:3.', 'SLUICE_REDIS_BUSY'],
  ['NOAUTH Authentication required.', 'SLUICE_REDIS_AUTH'],
  ['CLUSTERDOWN The cluster is down', 'SLUICE_REDIS_BUSY'],
  ['MASTERDOWN Link with MASTER is down', 'SLUICE_REDIS_BUSY'],
  ["NOPERM no permissions to run 'zadd' on @user_script:3.", 'SLUICE_REDIS_PERMISSION'],
])('leaves a store that says: %s', async (reply, code) => {
  const { limiter, errors } = observed(storeThatSays(reply))
  for (let i = 0; i < 3; i += 1) await limiter.consume('k')
  expect(limiter.storeHealth()).toMatchObject({ breaker: 'open', isAway: true })
  expect(errors[0]).toMatchObject({ error: { code } })
})

it('leaves a store that refuses to write in the middle of the script', async () => {
  const { limiter, errors } = observed(storeThrough((args) => args))
  await limiter.consume('k')
  await server.cli('CONFIG', 'SET', 'min-replicas-to-write', '1')
  for (let i = 0; i < 3; i += 1) await limiter.consume('k')
  await server.cli('CONFIG', 'SET', 'min-replicas-to-write', '0')
  expect(errors).toHaveLength(3)
  expect(errors[0]).toMatchObject({ error: { code: 'SLUICE_REDIS_BUSY' } })
  expect(limiter.storeHealth()).toMatchObject({ breaker: 'open' })
})

it.each(['fixed-window', 'concurrency'] as const)(
  'lets a check that the script fails for hurt none of its call (%s)',
  async (algorithm) => {
    // A cost that Lua cannot calculate with.
    const spoil = (arg: unknown) => {
      if (arg === '7' || arg === '-7') return 'x'
      return typeof arg === 'string' ? arg.replace(/\b7\b(?=[,\]])/g, '"x"') : arg
    }
    const store = storeThrough(([name, script, ...args]) => [name, script, ...args.map(spoil)])
    const own = algorithm === 'concurrency' ? { algorithm } : { algorithm, window: '1m' as const }
    const { errors, events, limiter } = observed(store, { limit: 10, ...own })
    for (let round = 1; round <= 5; round += 1) {
      const costs = [1, 1, 7, 1, 1]
      const decisions = await Promise.all(
        costs.map((cost, index) => limiter.consume(`${algorithm}${index}`, { cost })),
      )
      const sources = ['store', 'store', 'fallback', 'store', 'store']
      expect(decisions.map(({ source }) => source)).toEqual(sources)
      for (const [index, { outcomes }] of decisions.entries()) {
        if (index !== 2) expect(outcomes[0]?.remaining).toBe(10 - round)
      }
    }
    expect(errors.map(({ error }) => error.code)).toEqual(Array(5).fill('SLUICE_STORE_CHECK'))
    expect(errors[0]?.error.message).toContain('could not decide this check')
    expect(events).toEqual([])
    expect(limiter.storeHealth().breaker).toBe('closed')
  },
)
