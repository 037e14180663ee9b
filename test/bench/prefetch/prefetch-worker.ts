import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { answerParent } from '../../support/child.ts'
import { quantile } from '../harness/figures.ts'
import { rateLimitRedis } from '../subjects/rate-limit-redis.ts'

export type Subject = 'with' | 'async' | 'without' | 'rate-limit-redis'

export interface OpenInput {
  readonly subject: Subject
  readonly redisPort: number
  readonly limit: number
  readonly windowMs: number
  readonly prefetchMs: number
}

export interface RoundOutput {
  readonly requests: number
  readonly allowed: number
  /** Median of the time (µs) that a call takes before it returns its promise. */
  readonly p50Us: number
}

export type PrefetchProtocol = {
  open: { input: OpenInput; output: undefined }
  round: { input: { durationMs: number; perSecond: number }; output: RoundOutput }
}

let check = async (_key: string): Promise<boolean> => false

answerParent<PrefetchProtocol>({
  async open({ subject, redisPort, limit, windowMs, prefetchMs }) {
    const redis = new Redis(redisPort)
    await redis.ping()
    if (subject === 'rate-limit-redis') {
      const setting = { prefix: 'peer', traffic: 'allowed', clock: 'server' } as const
      const connect = async () => redis
      const subject = await rateLimitRedis({ ...setting, connect, limit, windowMs })
      check = async (key) => subject.check(key)
      return undefined
    }
    const own =
      subject === 'with'
        ? { prefetch: prefetchMs }
        : subject === 'async'
          ? { async: { maxUncounted: limit / 100 } }
          : {}
    const limiter = createLimiter({
      policies: [{ name: 'hot', limit, window: windowMs, ...own }],
      store: redisStore(redis, { prefix: subject }),
      deadlineMs: 10_000,
    })
    check = async (key) => (await limiter.consume(key)).allowed
    return undefined
  },

  async round({ durationMs, perSecond }) {
    const times: number[] = []
    let [requests, allowed, due] = [0, 0, 0]
    const endsAt = performance.now() + durationMs
    for (let now = performance.now(), last = now; now < endsAt; now = performance.now()) {
      // A process that was held up does not ask for all that it has missed.
      due = Math.min(due + ((now - last) / 1_000) * perSecond, perSecond / 20 + 1)
      last = now
      const answers: Promise<boolean>[] = []
      for (; due >= 1; due -= 1) {
        const startedAt = performance.now()
        answers.push(check('hot'))
        times.push((performance.now() - startedAt) * 1_000)
      }
      requests += answers.length
      for (const isAllowed of await Promise.all(answers)) if (isAllowed) allowed += 1
      await sleep(1)
    }
    return { requests, allowed, p50Us: quantile(times, 0.5) }
  },
})
