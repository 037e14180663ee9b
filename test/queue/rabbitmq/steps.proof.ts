import type { Store } from '@sluice/core'
import type { Settlement } from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../support/until.ts'
import { newJob, roomy } from '../new-job.ts'
import { RabbitmqBench } from './bench.ts'

const bench = RabbitmqBench.of()
const dead: Settlement = { outcome: 'dead', error: 'no' }

/** A store whose scripts can be held up, or fail, as when its process dies before. */
function storeWith(before: (text: string) => void | Promise<void>): Store {
  const client = new Redis(bench.redis.url, { maxRetriesPerRequest: null })
  onTestFinished(() => client.disconnect())
  const store = redisStore(client)
  return {
    ...store,
    apply: store.apply.bind(store),
    async runScript(text, keys, args) {
      await before(text)
      return store.runScript(text, keys, args)
    },
  }
}

describe('a retry of a dead letter', () => {
  it('leaves a dead letter, or a job that waits, at whichever step its process dies', async () => {
    const observer = bench.open()
    const job = newJob()
    await observer.enqueue(job, roomy)
    const worker = observer.work(async () => dead, {
      ...{ concurrency: 1, leaseMs: 60_000, onStalled: () => undefined },
    })
    await until('it is dead', async () => (await observer.status(job.id))?.state === 'failed')
    await worker.close()
    for (let steps = 0; ; steps += 1) {
      let left = steps
      const store = storeWith(() => {
        left -= 1
        if (left < 0) throw new Error('the process is gone')
      })
      const dying = bench.open({ name: observer.name, store })
      const isRetried = await dying.retry(job.id).catch(() => false)
      const { state } = (await observer.status(job.id)) ?? {}
      const { depth, dead: letters } = await observer.depth()
      expect([state, depth, letters]).toEqual(isRetried ? ['pending', 1, 0] : ['failed', 0, 1])
      if (isRetried) break
      expect(steps).toBeLessThan(10)
    }
  })
})
