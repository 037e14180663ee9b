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

/** A server that listens. */
export interface Listening {
  readonly port: number
}

/** What a framework serves: nothing but the route, or the route behind a limiter. */
export interface HttpApps {
  bare(): Promise<Listening>
  sluice(setting: HttpSetting): Promise<Listening>
  peer(setting: HttpSetting): Promise<Listening>
}

export interface HttpContender extends Contender {
  readonly framework: 'express' | 'fastify'
  readonly store: 'none' | 'memory' | 'redis'
  listen(setting: HttpSetting): Promise<Listening>
}
