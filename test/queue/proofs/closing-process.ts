import { setTimeout as sleep } from 'node:timers/promises'
import { bullmqBroker, createWorker } from '@sluice/queue'
import { tellParent } from '../../support/child.ts'

/** A process that closes its worker and its broker when it is told to end, and nothing more. Its argument: URL of Redis. */
const [url = ''] = process.argv.slice(2)

const broker = bullmqBroker({ connection: url, observers: { onError: () => undefined } })
const worker = createWorker({
  broker,
  lease: '1s',
  handler: () => sleep(60_000, undefined, { ref: false }),
})
const beat = setInterval(() => tellParent(worker.running), 50)

process.once('SIGTERM', async () => {
  clearInterval(beat)
  await worker.close({ grace: 100 })
  await broker.close()
  process.disconnect()
})
