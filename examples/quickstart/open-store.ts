import { memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

export interface OpenStore {
  store: Store
  /** Where the counts are, for the startup message. */
  about: string
}

/** Redis if there is a URL, otherwise the memory of this process. */
export async function openStore(url: string | undefined): Promise<OpenStore> {
  if (url === undefined || url === '') {
    return {
      store: memoryStore(),
      about: 'in the memory of this process (set REDIS_URL for Redis)',
    }
  }
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
  try {
    await redis.connect()
  } catch {
    console.error(`REDIS_URL is set, but no Redis answers at ${withoutPassword(url)}.`)
    process.exit(1)
  }
  return { store: redisStore(redis), about: `in Redis at ${withoutPassword(url)}` }
}

function withoutPassword(url: string): string {
  if (!URL.canParse(url)) return 'an address that is not a URL'
  const parsed = new URL(url)
  parsed.password = ''
  return parsed.href
}
