import type { HttpContender } from './http-contender.ts'

/** A server loads its own framework only. */
const apps = {
  express: async () => (await import('./express-apps.ts')).expressApps,
  fastify: async () => (await import('./fastify-apps.ts')).fastifyApps,
}
const frameworks = [
  { framework: 'express', shown: 'Express', peer: 'express-rate-limit' },
  { framework: 'fastify', shown: 'Fastify', peer: '@fastify/rate-limit' },
] as const

/** Everybody who serves; a server process finds its contender here by name. */
export const httpContenders: readonly HttpContender[] = frameworks.flatMap(
  ({ framework, shown, peer }): HttpContender[] => [
    {
      ...{ name: `bare ${shown}`, role: 'reference', framework, store: 'none' },
      listen: async () => (await apps[framework]()).bare(),
    },
    ...(['memory', 'redis'] as const).flatMap((store): HttpContender[] => [
      {
        ...{ name: `sluice, ${shown}, ${store}`, role: 'ours', framework, store },
        listen: async (setting) => (await apps[framework]()).sluice(setting),
      },
      {
        ...{ name: `${peer}, ${store}`, role: 'peer', framework, store },
        listen: async (setting) => (await apps[framework]()).peer(setting),
      },
    ]),
  ],
)
