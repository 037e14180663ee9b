// Orders are answered with 202 at once, a worker handles them, and a client that obeys the waits polls for the results. npm start -w examples/queue
// API, worker and client in one process, jobs in its memory REDIS_URL=redis://localhost npm start -w examples/queue the same over BullMQ; ROLE=api,
// ROLE=worker or ROLE=client for one of them ROLE=outbound npm start -w examples/queue calls to a third party within its quota; ROLE=vendor for that
// one alone, at VENDOR BROKER=rabbitmq npm start -w examples/queue the same over RabbitMQ and Redis; RABBITMQ_URL and REDIS_URL say where
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { reportApi } from './api.ts'
import { orderReports } from './client.ts'
import { openBroker } from './open-broker.ts'
import { callVendor } from './outbound.ts'
import { startVendor } from './vendor.ts'
import { reportWorker } from './worker.ts'

const { PORT = '3000', ROLE = 'all', ORDERS = '8' } = process.env
const plays = (role: string): boolean => ROLE === role || ROLE === 'all'

if (ROLE === 'client') await orderReports(`http://localhost:${PORT}`, Number(ORDERS))
else if (ROLE === 'outbound') await callVendor(process.env)
else if (ROLE === 'vendor') {
  console.log(`the third party is ${(await startVendor({ limit: 5, windowMs: 1_000 })).url}`)
} else await serve()

async function serve(): Promise<void> {
  const opened = openBroker(process.env)
  console.log(`Jobs are kept ${opened.about}.`)
  const worker = plays('worker') ? reportWorker(opened) : undefined
  const server = plays('api') ? reportApi(opened).listen(Number(PORT)) : undefined
  process.once('SIGTERM', close)
  process.once('SIGINT', close)
  if (!server) return

  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = `http://localhost:${port}`
  console.log(`listening on ${port}`)
  if (plays('client')) await orderReports(url, Number(ORDERS))
  console.log(`Try:  curl -i -X POST ${url}/reports`)
  console.log(`and then its Location:  curl -i ${url}/jobs/…`)

  /** Accepts no more orders, lets the worker finish its jobs, and exits. */
  async function close(): Promise<void> {
    server?.close()
    await worker?.close()
    await opened.broker.close()
    process.exit()
  }
}
