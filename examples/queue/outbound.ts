import { once } from 'node:events'
import { memoryStore } from '@sluice/core'
import { auditStream, createOutbound } from '@sluice/outbound'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { startVendor } from './vendor.ts'

/**
 * Makes ten calls to a third party that allows 5 per second, and counts refused calls.
 * @param env `VENDOR`: a running third party; `REDIS_URL`: callers that use it share the quota
 */
export async function callVendor({ REDIS_URL, VENDOR }: NodeJS.ProcessEnv): Promise<void> {
  const vendor = VENDOR ? undefined : await startVendor({ limit: 5, windowMs: 1_000 })
  const redis = REDIS_URL ? new Redis(REDIS_URL) : undefined
  if (redis) await once(redis, 'ready')
  const outbound = createOutbound({
    name: 'vendor',
    limits: [{ limit: 5, window: '1s' }],
    store: redis ? redisStore(redis) : memoryStore(),
    // With Redis the audit trail is a stream there; without, it is printed.
    observers: redis ? auditStream({ client: redis }) : { onEvent: (event) => console.log(event) },
  })

  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, page) =>
      outbound.fetch(`${VENDOR ?? vendor?.url}/contacts?page=${page}`),
    ),
  )
  const refused = answers.filter(({ status }) => status === 429).length
  console.log(`10 calls made, ${refused} refused`)
  await outbound.close()
  await redis?.quit()
  await vendor?.close()
}
