import { rateLimit } from '@sluice/express'
import express from 'express'

export interface Arrival {
  /** Milliseconds since 1970. */
  readonly atMs: number
  readonly status: number
  /** When the client sent it, by its own word; both run on one machine. */
  readonly sentMs: number
}

// A process: an API that admits so many requests a second of one client address. It tells its parent its port, and
// `/arrivals` who came when since it was asked last.
const arrivals: Arrival[] = []
const app = express()
app.get('/arrivals', (_request, response) => void response.json(arrivals.splice(0)))
app.use((request, response, next) => {
  const atMs = performance.timeOrigin + performance.now()
  const sentMs = Number(request.get('X-Sent-At'))
  response.on('finish', () => arrivals.push({ atMs, status: response.statusCode, sentMs }))
  next()
})
app.use(rateLimit({ limit: Number(process.argv[2]), window: '1s' }))
app.get('/items', (_request, response) => void response.json({ ok: true }))
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object') process.send?.(address?.port)
})
process.on('disconnect', () => process.exit())
