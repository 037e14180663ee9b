import { createWorker, type JobHandler, memoryBroker, type WorkerOptions } from '@sluice/queue'

// Compiled by `tsc -p test`, and never run: each line below an expected error must be one, and nothing else may be.

interface Report {
  readonly page: number
}

const broker = memoryBroker()
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
