import { rateLimit } from '@sluice/express'
import express from 'express'

/** A request as the server saw it. */
export interface Arrival {
  /** Milliseconds since 1970. */
  readonly atMs: number
  readonly status: number
}

// An API that admits 50 requests a second from one key, as a process of its own. `/arrivals` tells who came when.
const arrivals: Arrival[] = []
const app = express()
app.get('/arrivals', (_request, response) => {
  response.json(arrivals.splice(0))
})
app.use((_request, response, next) => {
  const atMs = performance.timeOrigin + performance.now()
  response.on('finish', () => {
    arrivals.push({ atMs, status: response.statusCode })
  })
  next()
})
app.use(rateLimit({ limit: Number(process.env.LIMIT ?? 50), window: '1s' }))
app.get('/items', (_request, response) => {
  response.json({ ok: true })
})
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object') process.send?.(address?.port)
})
process.on('disconnect', () => process.exit())
