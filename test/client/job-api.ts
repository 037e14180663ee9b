import { apiKey, mount, rateLimit } from '@sluice/express'
import {
  createAdmission,
  createQueue,
  createWorker,
  type JobHandler,
  memoryBroker,
  type StatusMonitorOptions,
  statusMonitor,
} from '@sluice/queue'
import express, { type RequestHandler } from 'express'
import { serve } from '../support/serve.ts'

export interface JobApiOptions {
  /** Does the jobs, one at a time; without one nobody does. */
  readonly handler?: JobHandler
  readonly poll?: StatusMonitorOptions['poll']
  readonly before?: RequestHandler
}

/** An API whose `POST /reports` is queued, and whose jobs can be watched at `/jobs`. */
export async function jobApi({ handler, poll, before }: JobApiOptions) {
  const broker = memoryBroker()
  const queue = createQueue({ broker, identity: apiKey() })
  const worker = handler && createWorker({ broker, handler, attempts: 1, concurrency: 1 })
  const app = express()
  if (before) app.use(before)
  const admission = createAdmission({ queue, monitor: '/jobs' })
  app.post('/reports', rateLimit({ limit: 100, window: '1s', key: apiKey(), admission }))
  app.use('/jobs', mount(statusMonitor({ queue, ...(poll && { poll }) })))
  const { url, close } = await serve(app)
  return {
    url,
    async close() {
      await worker?.close({ grace: 1 })
      await broker.close()
      await close()
    },
  }
}
