import type { AddressInfo } from 'node:net'
import { apiKey, rateLimit as sluice } from '@sluice/express'
import { redisStore } from '@sluice/redis'
import express, { type RequestHandler } from 'express'
import { rateLimit } from 'express-rate-limit'
import { RedisStore } from 'rate-limit-redis'
import { sendBy } from '../subjects/rate-limit-redis.ts'
import { clientHeader, type HttpApps, type Listening, secret } from './http-contender.ts'

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

function listen(middleware: readonly RequestHandler[]): Promise<Listening> {
  const app = express()
  for (const handler of middleware) app.use(handler)
  app.get('/', (_request, response) => {
    response.json({ hello: 'world' })
  })
  return new Promise((resolve, reject) => {
    const server = app.listen(0, '127.0.0.1', (error) => {
      if (error) reject(error)
      else resolve({ port: portOf(server.address()) })
    })
  })
}

export function portOf(address: AddressInfo | string | null): number {
  if (typeof address === 'object' && address) return address.port
  throw new Error('the server listens on no port')
}
