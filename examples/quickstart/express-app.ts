import type { Store } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import express, { type Express } from 'express'

export function expressApp(store: Store): Express {
  const app = express()
  app.use(rateLimit({ store, limit: 5, window: '10s' }))
  app.get('/', (_request, response) => {
    response.json({ hello: 'from Express' })
  })
  return app
}
