// One process of a fleet, of this version or the last one: 500 requests at once on one key, when the parent says go. Prints how many were admitted.

import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

const [url = '', policies = '[]'] = process.argv.slice(2)
const redis = new Redis(url)
await redis.ping()
const limiter = createLimiter({
  deadlineMs: 60_000,
  store: redisStore(redis),
  policies: JSON.parse(policies),
  failureMode: 'closed',
})

process.stdin.once('data', async () => {
  const decisions = await Promise.all(
    Array.from({ length: 500 }, () => limiter.consume('everybody')),
  )
  console.log(decisions.filter(({ allowed }) => allowed).length)
  redis.disconnect()
  process.stdin.destroy()
})
console.log('ready')
