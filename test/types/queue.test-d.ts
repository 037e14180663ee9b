import { memoryStore } from '@sluice/core'
import { createOutbound } from '@sluice/outbound'
import {
  createQueue,
  createWorker,
  type JobHandler,
  memoryBroker,
  statusMonitor,
  type WorkerOptions,
} from '@sluice/queue'

const broker = memoryBroker()
const handler = () => null
const queue = createQueue({ broker, maxAge: '1h', retention: 60_000 })
createWorker({ broker, handler })
createWorker({ broker, handler, limit: 5, window: '1s', store: memoryStore(), timeout: '5m' })
createOutbound({ name: 'crm', limits: [{ limit: 20, window: '1s' }], maxWait: '1m' })
statusMonitor({ queue, poll: { limit: 20, window: '1s' } })

// @ts-expect-error
createQueue({ broker, maxAge: '1 hour' })
// @ts-expect-error No window.
createWorker({ broker, handler, limit: 5 })
// @ts-expect-error No limit.
createWorker({ broker, handler, window: '1s' })
// @ts-expect-error Nothing is counted there.
createWorker({ broker, handler, store: memoryStore() })
// @ts-expect-error
createWorker({ broker, handler, limit: 5, window: '1 second' })
// @ts-expect-error
createWorker({ broker, handler, backoff: { base: '1 second' } })
// @ts-expect-error
createOutbound({ name: 'crm', limits: [{ limit: 20, window: '1 second' }] })
// @ts-expect-error
createOutbound({ name: 'crm', limits: [{ limit: 20 }] })
// @ts-expect-error
statusMonitor({ queue, poll: { limit: 20 } })

interface Report {
  readonly page: number
}

const render: JobHandler<Report, string> = ({ payload }) => `page ${payload.page}`
createWorker<Report>({ broker, handler: ({ payload }) => payload.page })
createWorker<Report, string>({ broker, handler: async ({ payload }) => String(payload.page) })
createWorker({ broker, handler: render })
createWorker({ broker, handler: ({ id, payload }) => ({ id, payload }) })
export const options: WorkerOptions = { broker, handler: () => undefined }

// @ts-expect-error What a payload is nobody has said.
createWorker({ broker, handler: ({ payload }) => payload.page })
// @ts-expect-error
createWorker<Report>({ broker, handler: ({ payload }) => payload.pages })
// @ts-expect-error
createWorker<Report, string>({ broker, handler: ({ payload }) => payload.page })
