import { apiKey, firstOf, ip, mount, rateLimit } from '@sluice/express'
import { createAdmission, createQueue, statusMonitor } from '@sluice/queue'
import express, { type Express } from 'express'
import type { Opened } from './open-broker.ts'

/** An API that accepts orders for reports, and shows clients their status. */
export function reportApi({ broker, store }: Opened): Express {
  // Stands in for a database: anybody can make up a key, so only issued keys count.
  const issued = new Set(['demo'])
  const who = firstOf(apiKey({ verify: (key) => issued.has(key) }), ip())
  const queue = createQueue({ broker, identity: who, maxDepth: 100 })
  const app = express()
  app.post(
    '/reports',
    rateLimit({
      ...{ store, name: 'orders', limit: 5, window: '2s', key: who },
      admission: createAdmission({ queue, monitor: '/jobs' }),
    }),
  )
  app.use('/jobs', mount(statusMonitor({ queue })))
  return app
}
