// Prints the warnings of a store over an older core, in an adapter over this one.
import { rateLimit } from '@sluice/express'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

console.warn = (text) => console.log(text)
const redis = new Redis({ lazyConnect: true })
const limits = { store: redisStore(redis), limit: 1, window: '1m' }
rateLimit(limits)
rateLimit(limits)
redis.disconnect()
process.exit()
