import type { HttpContender } from './http-contender.ts'

/** A server loads its own framework only. */
const expressApps = () => import('./express-apps.ts')
const fastifyApps = () => import('./fastify-apps.ts')

/** Everybody who serves; a server process finds its contender here by name. */
export const httpContenders: readonly HttpContender[] = [
  {
    name: 'bare Express',
    role: 'reference',
    framework: 'express',
    store: 'none',
    listen: async () => (await expressApps()).bareExpress(),
  },
  ...(['memory', 'redis'] as const).flatMap((store): HttpContender[] => [
    {
      name: `sluice, Express, ${store}`,
      role: 'ours',
      framework: 'express',
      store,
      listen: async (setting) => (await expressApps()).sluiceExpress(setting),
    },
    {
      name: `express-rate-limit, ${store}`,
      role: 'peer',
      framework: 'express',
      store,
      listen: async (setting) => (await expressApps()).expressRateLimit(setting),
    },
  ]),
  {
    name: 'bare Fastify',
    role: 'reference',
    framework: 'fastify',
    store: 'none',
    listen: async () => (await fastifyApps()).bareFastify(),
  },
  ...(['memory', 'redis'] as const).flatMap((store): HttpContender[] => [
    {
      name: `sluice, Fastify, ${store}`,
      role: 'ours',
      framework: 'fastify',
      store,
      listen: async (setting) => (await fastifyApps()).sluiceFastify(setting),
    },
    {
      name: `@fastify/rate-limit, ${store}`,
      role: 'peer',
      framework: 'fastify',
      store,
      listen: async (setting) => (await fastifyApps()).fastifyLimit(setting),
    },
  ]),
]
