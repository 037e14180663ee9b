import type { Redis } from 'ioredis'
import type { Contender } from '../harness/rounds.ts'
import type { Quota } from '../subjects/algorithm-policy.ts'

/** The header by which clients are told apart, for everybody. */
export const clientHeader = 'x-client'

/** In production there is one. */
export const secret = 'of the benchmark'

interface HttpSetting extends Quota {
  /** Where counts live; in the process when left out. */
  readonly redis?: Redis
  /** What its keys begin with. */
  readonly prefix: string
  /** Told when the store of ours did not decide. */
  onStoreError?(error: Error): void
}

/** What a framework serves, each at a port: nothing but the route, or the route behind a limiter. */
export interface HttpApps {
  bare(): Promise<number>
  sluice(setting: HttpSetting): Promise<number>
  peer(setting: HttpSetting): Promise<number>
}

export interface HttpContender extends Contender {
  readonly framework: 'express' | 'fastify'
  readonly store: 'none' | 'memory' | 'redis'
  listen(setting: HttpSetting): Promise<number>
}

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
