// One limiter and one client in a process of their own, which goes through many faults and then has to end by itself.
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { answerParent, leaveParent, tellParent } from '../support/child.ts'

export interface Held {
  readonly sockets: number
  readonly timers: number
  readonly heapBytes: number
}

export type LeakProtocol = {
  /** Makes some decisions: who made them, the store or something else. */
  ask: { input: undefined; output: 'store' | 'elsewhere' }
  reopen: { input: undefined; output: undefined }
  measure: { input: undefined; output: Held }
  /** Closes everything, and gives no answer: the process ends by itself. */
  close: { input: undefined; output: undefined }
}

const KEYS_AT_ONCE = 20

const redis = new Redis({ host: '127.0.0.1', port: Number(process.argv[2]) })
redis.on('error', () => undefined)
const store = redisStore(redis, { prefix: 'leaks' })
const limiter = createLimiter({
  store,
  limit: 1_000,
  window: 1_000,
  deadlineMs: 20,
  observers: { onStoreError: () => undefined },
})
process.on('unhandledRejection', (reason) => tellParent(String(reason)))
answerParent<LeakProtocol>({ ask, reopen, measure, close })

/** Some requests at once, for keys that are few, so that what is kept of keys does not look like a leak. */
async function ask() {
  const keys = Array.from({ length: KEYS_AT_ONCE }, (_, index) => `key ${index}`)
  const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
  return decisions.every(({ source }) => source === 'store') ? 'store' : 'elsewhere'
}

async function reopen() {
  for (const prefix of Array.from({ length: 20 }, () => crypto.randomUUID())) {
    const other = createLimiter({ store: redisStore(redis, { prefix }), limit: 1, window: 1_000 })
    await other.consume('key')
    await other.close()
  }
  return undefined
}

async function measure(): Promise<Held> {
  // What was collected may have held what was not: two rounds, with a turn of the event loop between them.
  for (let round = 0; round < 2; round += 1) {
    globalThis.gc?.()
    await sleep(20)
  }
  const resources = process.getActiveResourcesInfo()
  const count = (name: string) => resources.filter((resource) => resource.startsWith(name)).length
  return {
    sockets: count('TCP'),
    timers: count('Timeout') + count('Immediate'),
    heapBytes: process.memoryUsage().heapUsed,
  }
}

async function close() {
  await limiter.close()
  redis.disconnect()
  leaveParent()
  return undefined
}
