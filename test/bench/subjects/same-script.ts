import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import type { Redis } from 'ioredis'
import { policyFor } from './algorithm-policy.ts'
import type { OpenRedisSubject } from './redis-subject.ts'

/**
 * The script of Sluice, called directly with the arguments that Sluice gave it when each key was first asked for: what a check costs
 * without the limiter, the queue and the decoder.
 */
export const sameScript: OpenRedisSubject = async (setting) => {
  const client = await setting.connect()
  const prefix = 'bench.same-script'
  const { recorder, calls } = recording(client)
  const limiter = createLimiter({
    store: redisStore(recorder, { prefix }),
    policies: [{ ...policyFor('sliding-log', setting), name: 'p1' }],
  })
  const known = new Map<string, RedisCall>()

  let latest: Promise<unknown> = Promise.resolve()

  /** One at a time: checks that come together travel in one call. */
  function recordCall(key: string): Promise<boolean> {
    const next = latest.then(async () => {
      const { allowed } = await limiter.consume(key)
      const call = calls.pop()
      if (call) known.set(key, call)
      return allowed
    })
    latest = next
    return next
  }

  return {
    name: 'the same script, called directly',
    role: 'reference',
    prefix,

    async check(key) {
      const call = known.get(key)
      if (!call) return recordCall(key)
      return Array.isArray(await client.call(...call))
    },

    async fill(key) {
      for (let unit = 0; unit < setting.limit / 2; unit++) await recordCall(key)
    },
  }
}

type RedisCall = [command: string, ...args: (string | Buffer)[]]

/** A client that takes down the calls it passes on. */
function recording(client: Redis): {
  recorder: Parameters<typeof redisStore>[0]
  calls: RedisCall[]
} {
  const calls: RedisCall[] = []
  const recorder = {
    call(...args: RedisCall) {
      calls.push(args)
      return client.call(...args)
    },
    defineCommand: client.defineCommand.bind(client),
  }
  return { recorder, calls }
}
