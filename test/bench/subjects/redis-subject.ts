import type { MaybePromise } from '@sluice/core'
import type { Redis } from 'ioredis'
import type { SimulatedClock } from '../harness/simulated-clock.ts'
import type { Quota } from './algorithm-policy.ts'

export interface RedisSubject {
  check(key: string): MaybePromise<boolean>
  readonly prefix: string
  /** Fills one key as far as its traffic wants; nothing for those that are measured as well when nearly empty. */
  fill?(key: string): Promise<void>
  /**
   * Fills the logs of these identities on the server's clock: full but for one unit, as if requests came every `stepMs` ms to each. The dead
   * units that a log keeps until it is trimmed are more with every identity, so that copies of all of them are at every stage of that.
   */
  fillSteadily?(identities: readonly string[], stepMs: number): Promise<void>
  /** Tells the keys of one identity apart by what they count, so that a filled one can be copied to others of its kind. */
  kindOf?(redisKey: string): string
  /** The units that a full key records singly, by which its bytes are divided. */
  readonly recordedUnits?: number
}

export interface RedisSetting extends Quota {
  readonly prefix: string
  /** Where it connects; each subject has a connection of its own. */
  connect(): Promise<Redis>
  /** `allowed`: full logs, in which every admission expires an entry. `denied`: full ones in which nothing expires. */
  readonly traffic: 'allowed' | 'denied'
  /** `server`: Redis' own time. */
  readonly clock: SimulatedClock | 'server'
}

export type OpenRedisSubject = (setting: RedisSetting) => Promise<RedisSubject>
