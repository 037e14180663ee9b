import { setTimeout as sleep } from 'node:timers/promises'
import { createWorker } from '@sluice/queue'
import { openBroker } from './open-broker.ts'

/** A worker in a process of its own, which writes down what it starts and gives up. A job can end its process. Its arguments: place of the broker, limit, concurrency, ms a job takes. */
const [place = '', limit = '', concurrency = '', jobMs = ''] = process.argv.slice(2)

const { broker, client: redis, store } = openBroker(JSON.parse(place))
createWorker({
  ...{ broker, store },
  limit: Number(limit),
  window: '1s',
  concurrency: Number(concurrency),
  lease: '1s',
  async handler({ id, payload }) {
    if (payload === 'poison') process.kill(process.pid, 'SIGKILL')
    await redis.rpush('started', JSON.stringify({ id, at: Date.now(), pid: process.pid }))
    await sleep(Number(jobMs))
  },
  observers: {
    onEvent: (event) => {
      if (event.type === 'dead') void redis.rpush('dead', JSON.stringify(event))
    },
  },
})
process.once('disconnect', () => process.exit())
