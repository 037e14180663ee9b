import { pipeline } from 'node:stream/promises'
import { rateLimit, user } from '@sluice/express'
import express, { type Express } from 'express'
import { askOf, moneyOf, tokensOf } from './ask.ts'
import { callVendor } from './paid-answer.ts'

/** A proxy to a model, which limits the tokens and the money of each user. */
export function expressProxy(vendor: string): Express {
  const app = express()
  app.post(
    '/v1/{*path}',
    // The body determines the units.
    express.json(),
    rateLimit({
      key: user((req) => req.get('x-user')),
      policies: [
        { name: 'tokens', limit: 1_000, window: '1m', reserve: (req) => tokensOf(req.body) },
        { name: 'money', limit: 20_000, window: '1d', reserve: (req) => moneyOf(req.body) },
      ],
    }),
    async (req, res) => {
      const ask = askOf(req.body)
      if (!ask || !req.rateLimit) {
        res.status(400).json({ error: 'max_tokens or messages are missing' })
        return
      }
      const events = await callVendor(vendor + req.path, ask, req.rateLimit)
      if (!events) {
        res.status(502).json({ error: 'the vendor failed' })
        return
      }
      res.type('text/event-stream')
      // This rejects if the client disconnects. Then nobody waits for an answer.
      await pipeline(events, res).catch(() => undefined)
    },
  )
  return app
}
