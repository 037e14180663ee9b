import { apiKey, rateLimit as sluice } from '@sluice/express'
import { redisStore } from '@sluice/redis'
import express, { type RequestHandler } from 'express'
import { rateLimit } from 'express-rate-limit'
import { RedisStore } from 'rate-limit-redis'
import { serve } from '../../support/serve.ts'
import { sendBy } from '../subjects/rate-limit-redis.ts'
import { clientHeader, type HttpApps, secret } from './http-contenders.ts'

export const expressApps: HttpApps = {
  bare: () => listen([]),

  /** With the defaults: draft-11 and legacy headers, a problem body. */
  sluice: ({ redis, prefix, limit, windowMs, onStoreError }) =>
    listen([
      sluice({
        policies: [{ limit, window: windowMs }],
        key: apiKey({ header: clientHeader, verify: false }),
        ...(redis && { store: redisStore(redis, { prefix, secret }) }),
        observers: { onStoreError: ({ error }) => onStoreError?.(error) },
      }),
    ]),

  /** With headers as its documentation advises, of the newest draft it has, and the legacy ones. */
  peer: ({ redis, prefix, limit, windowMs }) =>
    listen([
      rateLimit({
        ...{ limit, windowMs, standardHeaders: 'draft-8', legacyHeaders: true },
        keyGenerator: (request) => request.get(clientHeader) ?? '',
        ...(redis && {
          store: new RedisStore({ prefix: `${prefix}:`, sendCommand: sendBy(redis) }),
        }),
      }),
    ]),
}

async function listen(middleware: readonly RequestHandler[]): Promise<number> {
  const app = express()
  for (const handler of middleware) app.use(handler)
  app.get('/', (_request, response) => void response.json({ hello: 'world' }))
  return (await serve(app)).port
}
