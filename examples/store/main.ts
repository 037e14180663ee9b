// A limiter with a custom store: the sixth request within ten seconds is denied.
import { createLimiter } from '@sluice/core'
import { mapStore } from './map-store.ts'

const limiter = createLimiter({ store: mapStore(), limit: 5, window: '10s' })
for (let request = 1; request <= 6; request += 1) {
  const { allowed, retryAfterMs } = await limiter.consume('ada')
  console.log(`request ${request}: ${allowed ? 'allowed' : `denied for ${retryAfterMs} ms`}`)
}
await limiter.close()
