import { setTimeout as sleep } from 'node:timers/promises'
import { bullmqBroker, createWorker } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

/** A worker in a process of its own, which writes down what it starts and ends. Its arguments: URL, queue, limit, concurrency, ms a job takes. */
const [url = '', name = '', limit = '', concurrency = '', jobMs = ''] = process.argv.slice(2)

const redis = new Redis(url)
const broker = bullmqBroker({ connection: url, name })
createWorker({
  broker,
  store: redisStore(redis),
  limit: Number(limit),
  window: '1s',
  concurrency: Number(concurrency),
  lease: '1s',
  async handler({ id }) {
    await redis.rpush('started', JSON.stringify({ id, at: Date.now(), pid: process.pid }))
    await sleep(Number(jobMs))
    await redis.rpush('ended', id)
  },
})
process.once('disconnect', () => process.exit())
