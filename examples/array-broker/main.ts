// A queue with a custom broker: a worker runs five jobs, two at a time.
import { createQueue, createWorker } from '@sluice/queue'
import { arrayBroker } from './array-broker.ts'

const broker = arrayBroker()
const queue = createQueue({ broker })
const worker = createWorker<{ report: number }>({
  broker,
  concurrency: 2,
  handler: ({ payload }) => `report ${payload.report} is done`,
})
for (let report = 1; report <= 5; report += 1) {
  const added = await queue.enqueue({ identity: 'ada', payload: { report } })
  if (!('id' in added)) throw new Error(added.outcome)
  const job = await queue.settled(added.id, 'ada', { timeoutMs: 10_000 })
  console.log(`${job?.state}: ${job?.result}`)
}
await worker.close()
