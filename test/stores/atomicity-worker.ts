// One process of a fleet, of this version or the last one, which asks 500 times at once for one key.

import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { answerParent } from '../support/child.ts'

export type BurstProtocol = {
  connect: { input: undefined; output: unknown }
  admitted: { input: undefined; output: number }
}

const [url = '', policies = '[]'] = process.argv.slice(2)
const redis = new Redis(url)
const limiter = createLimiter({
  deadlineMs: 60_000,
  store: redisStore(redis),
  policies: JSON.parse(policies),
  failureMode: 'closed',
})

answerParent<BurstProtocol>({
  connect: () => redis.ping(),
  async admitted() {
    const asked = Array.from({ length: 500 }, () => limiter.consume('everybody'))
    return (await Promise.all(asked)).filter(({ allowed }) => allowed).length
  },
})
