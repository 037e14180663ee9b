import { setTimeout as sleep } from 'node:timers/promises'
import { bullmqBroker, createWorker } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

/** A worker whose handler ends its process for a certain job. Its arguments: URL of Redis. */
const [url = ''] = process.argv.slice(2)

const redis = new Redis(url)
createWorker({
  broker: bullmqBroker({ connection: url, onError: () => undefined }),
  ...{ store: redisStore(redis), limit: 20, window: '1s', concurrency: 5, lease: '1s' },
  async handler({ id, payload }) {
    if (payload === 'poison') process.kill(process.pid, 'SIGKILL')
    await redis.rpush('started', id)
    await sleep(50)
  },
  onEvent: (event) => {
    if (event.type === 'dead') void redis.rpush('dead', JSON.stringify(event))
  },
})
process.once('disconnect', () => process.exit())
