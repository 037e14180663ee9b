import { bareExpress, expressRateLimit, sluiceExpress } from './express-apps.ts'
import { bareFastify, fastifyLimit, sluiceFastify } from './fastify-apps.ts'
import type { HttpContender } from './http-contender.ts'

/** Everybody who serves; a server process finds its contender here by name. */
export const httpContenders: readonly HttpContender[] = [
  {
    name: 'bare Express',
    role: 'reference',
    framework: 'express',
    store: 'none',
    listen: bareExpress,
  },
  ...(['memory', 'redis'] as const).flatMap((store): HttpContender[] => [
    {
      name: `sluice, Express, ${store}`,
      role: 'ours',
      framework: 'express',
      store,
      listen: sluiceExpress,
    },
    {
      name: `express-rate-limit, ${store}`,
      role: 'peer',
      framework: 'express',
      store,
      listen: expressRateLimit,
    },
  ]),
  {
    name: 'bare Fastify',
    role: 'reference',
    framework: 'fastify',
    store: 'none',
    listen: bareFastify,
  },
  ...(['memory', 'redis'] as const).flatMap((store): HttpContender[] => [
    {
      name: `sluice, Fastify, ${store}`,
      role: 'ours',
      framework: 'fastify',
      store,
      listen: sluiceFastify,
    },
    {
      name: `@fastify/rate-limit, ${store}`,
      role: 'peer',
      framework: 'fastify',
      store,
      listen: fastifyLimit,
    },
  ]),
]
