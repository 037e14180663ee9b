import { setTimeout as sleep } from 'node:timers/promises'
import { createWorker } from '@sluice/queue'
import { openBroker } from './open-broker.ts'

/** A worker whose handler ends its process for a certain job. Its argument: the place of the broker. */
const [place = ''] = process.argv.slice(2)

const { broker, client: redis, store } = openBroker(JSON.parse(place))
createWorker({
  ...{ broker, store, limit: 20, window: '1s', concurrency: 5, lease: '1s' },
  async handler({ id, payload }) {
    if (payload === 'poison') process.kill(process.pid, 'SIGKILL')
    await redis.rpush('started', id)
    await sleep(50)
  },
  observers: {
    onEvent: (event) => {
      if (event.type === 'dead') void redis.rpush('dead', JSON.stringify(event))
    },
  },
})
process.once('disconnect', () => process.exit())
