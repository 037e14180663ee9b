import { rateLimit } from 'express-rate-limit'
import type { Redis } from 'ioredis'
import { RedisStore, type SendCommandFn } from 'rate-limit-redis'
import type { OpenRedisSubject } from './redis-subject.ts'

/** rate-limit-redis, the store of express-rate-limit: a fixed window by PTTL and INCR, in one script call a request. */
export const rateLimitRedis: OpenRedisSubject = async ({ connect, prefix, traffic, windowMs }) => {
  const limit = traffic === 'denied' ? 0 : Number.MAX_SAFE_INTEGER
  const store = new RedisStore({ prefix: `${prefix}:`, sendCommand: sendBy(await connect()) })
  // The middleware is what tells its store the window.
  rateLimit({ windowMs, limit, store })
  await store.incrementScriptSha
  return { prefix, check: async (key) => (await store.increment(key)).totalHits <= limit }
}

/** As its documentation says, cast included. */
export function sendBy(client: Redis): SendCommandFn {
  return (command, ...args) => client.call(command, ...args) as ReturnType<SendCommandFn>
}
