// An order is answered with 202 at once, a worker sees to it, and its client polls for the result.
//   npm run example:queue                                  API and worker in one process, jobs in its memory
//   REDIS_URL=redis://localhost npm run example:queue      the same over BullMQ; ROLE=api or ROLE=worker for one of the two
import type { AddressInfo } from 'node:net'
import { reportApi } from './api.ts'
import { openBroker } from './open-broker.ts'
import { reportWorker } from './worker.ts'

const { REDIS_URL, PORT = '3000', ROLE = 'both' } = process.env
const opened = openBroker(REDIS_URL)
console.log(`Jobs are kept ${opened.about}.`)

const worker = ROLE === 'api' ? undefined : reportWorker(opened)
const server = ROLE === 'worker' ? undefined : reportApi(opened).listen(Number(PORT))
server?.once('listening', () => {
  const { port } = server.address() as AddressInfo
  console.log(`listening on ${port}`)
  console.log(`Try:  curl -i -X POST http://localhost:${port}/reports`)
  console.log(`and then its Location:  curl -i http://localhost:${port}/jobs/…`)
})

process.once('SIGTERM', close)
process.once('SIGINT', close)

/** Takes no more orders, lets the worker finish what it has begun, and ends. */
async function close(): Promise<void> {
  server?.close()
  await worker?.close()
  await opened.broker.close()
  process.exit()
}
