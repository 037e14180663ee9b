import type { Store } from '@sluice/core'
import { all, firstOf, ip, rateLimit as sluice, user } from '@sluice/express'
import type { Request } from 'express'
import { ipKeyGenerator, rateLimit } from 'express-rate-limit'
import { accountOf, type ShopLimits } from './express-shop.ts'

const isFree = ({ path }: Request) => path === '/health' || path.startsWith('/webhooks/')

/** As the shop had them. */
export function limitsBefore(): ShopLimits {
  const common = { standardHeaders: 'draft-8', legacyHeaders: true } as const
  const address = (request: Request) => ipKeyGenerator(request.ip ?? '')
  const identity = (request: Request) => accountOf(request)?.name ?? address(request)
  return {
    everywhere: rateLimit({
      ...common,
      ...{ windowMs: 60_000, limit: 40, keyGenerator: identity, skip: isFree },
      message: { error: 'too many requests' },
    }),
    login: rateLimit({
      ...common,
      ...{ windowMs: 900_000, limit: 3, skipSuccessfulRequests: true },
      keyGenerator: (request) => `${String(request.body?.name)}/${address(request)}`,
      message: { error: 'too many failed logins' },
    }),
    upload: rateLimit({
      ...common,
      ...{ windowMs: 3_600_000, limit: 2, keyGenerator: identity },
      handler: (_request, response) =>
        void response.status(429).json({ error: 'upload later', used: 2 }),
    }),
    admin: rateLimit({ ...common, windowMs: 60_000, limit: 5, statusCode: 429 }),
  }
}

/** Moved by docs/migrating.md. @param store of all limiters @default memory */
export function limitsAfter(store?: Store): ShopLimits {
  const identity = firstOf(
    user((request: Request) => accountOf(request)?.name),
    ip(),
  )
  const named = user((request: Request) => String(request.body?.name))
  return {
    everywhere: sluice({
      ...{ limit: 40, window: '1m', key: identity, store },
      message: { error: 'too many requests' },
      routes: { '/health': false, '/webhooks/*': false },
    }),
    login: sluice({
      ...{ limit: 3, window: '15m', key: all(named, ip()), store },
      chargeWhen: (_request, { status }) => status >= 400,
      message: { error: 'too many failed logins' },
    }),
    upload: sluice({
      ...{ limit: 2, window: '1h', key: identity, store },
      handler: (_request, response) => void response.json({ error: 'upload later', used: 2 }),
    }),
    admin: sluice({ limit: 5, window: '1m', store }),
  }
}
