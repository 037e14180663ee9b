import { setTimeout as sleep } from 'node:timers/promises'
import { createWorker, type Worker } from '@sluice/queue'
import type { Opened } from './open-broker.ts'

/** Creates the reports: five per second, however many processes there are. */
export function reportWorker({ broker, store }: Opened): Worker {
  return createWorker({
    ...{ broker, store, limit: 5, window: '1s', concurrency: 10 },
    async handler({ id, payload }, { signal }) {
      console.log(`report ${id}: begun`)
      await sleep(3_000, undefined, { signal })
      console.log(`report ${id}: done`)
      return { report: `what was asked: ${JSON.stringify(payload)}` }
    },
  })
}
