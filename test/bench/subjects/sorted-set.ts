import type { OpenRedisSubject } from './redis-subject.ts'

/** The sliding log as blog posts write it: one member of a sorted set for every request, in one script call a request. */
const consumeScript = `
local key, now, window, limit, member = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
redis.call('ZREMRANGEBYSCORE', key, 0, now - window)
local used = redis.call('ZCARD', key)
if used >= limit then return { 0, 0 } end
redis.call('ZADD', key, now, member)
redis.call('PEXPIRE', key, window)
return { 1, limit - used - 1 }
`

/** Only to prepare a full log: the same members, spread over the window. */
const fillScript = `
local key, now, window, limit = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
for unit = 1, limit do
  local at = math.floor(now - window + unit * window / limit)
  redis.call('ZADD', key, string.format('%.0f', at), string.format('%.0f', at) .. '-' .. unit)
end
redis.call('PEXPIRE', key, window)
`

export const sortedSet: OpenRedisSubject = async (setting) => {
  const { clock, limit, prefix, windowMs } = setting
  const client = await setting.connect()
  const sha = String(await client.script('LOAD', consumeScript))
  let unique = 0

  function now(): number {
    return clock === 'server' ? Date.now() : clock.read()
  }

  const keyOf = (identity: string): string => `${prefix}:${identity}`

  return {
    ...{ prefix, recordedUnits: limit },

    async check(key) {
      if (clock !== 'server') clock.tick()
      const at = now()
      unique += 1
      const args = [keyOf(key), at, windowMs, limit, `${at}-${unique}`]
      const reply = await client.evalsha(sha, 1, ...args)
      return Array.isArray(reply) && reply[0] === 1
    },

    async fill(key) {
      if (clock !== 'server') clock.advance(windowMs)
      await client.eval(fillScript, 1, keyOf(key), now(), windowMs, limit)
    },
  }
}
