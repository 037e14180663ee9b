import { createOutbound } from '@sluice/outbound'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

/** A process that calls a third party as often as it may. Its arguments: URL of Redis, URL of the third party, limit, window in ms. */
const [redisUrl = '', vendorUrl = '', limit = '', windowMs = ''] = process.argv.slice(2)

const redis = new Redis(redisUrl)
redis.on('error', () => undefined)
const outbound = createOutbound({
  name: 'vendor',
  limits: [{ limit: Number(limit), window: Number(windowMs) }],
  store: redisStore(redis),
})

async function callOn(): Promise<void> {
  for (;;) {
    const response = await outbound.fetch(vendorUrl)
    await response.arrayBuffer()
  }
}

for (let i = 0; i < Number(limit); i += 1) void callOn()
process.once('disconnect', () => process.exit())
