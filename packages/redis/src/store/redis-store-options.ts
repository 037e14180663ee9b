import {
  checkSecret,
  flag,
  invalid,
  isWholeNumber,
  knownFields,
  noteRelease,
  type Observers,
  observersOption,
  oneOf,
  orDefault,
  warnOnce,
  wholeNumber,
} from '@sluice/core'
import type { Encoding, KeyOptions } from '../keys/key-encoder.ts'

/**
 * Clock that decisions use. `server`: Redis's clock. `client`: the clock of this process, for
 * servers that forbid `TIME` in scripts; every heartbeat adjusts it to Redis's clock with the
 * command `TIME`. If that command is forbidden too, the clocks of the fleet must agree. A function
 * returns whole milliseconds since the epoch, for simulations and tests.
 */
export type Clock = 'server' | 'client' | (() => number)

/** Options of `redisStore`. */
export interface RedisStoreOptions {
  /**
   * Prefix of all keys, one for each application: 1 to 64 characters from `A-Z a-z 0-9 . _ : -`.
   * Braces are rejected: in a Cluster, they would put all keys on one node.
   * @default 'sluice'
   */
  prefix?: string | undefined
  /**
   * Turns identity digests into HMACs, so that nobody who reads the keys can guess identities.
   * @default none
   */
  secret?: string | undefined
  /**
   * `false` keeps identities readable in keys (escaped, and in full), for debugging.
   * @default true
   */
  digest?: boolean | undefined
  /**
   * Format of `sliding-log` in Redis: 'packed', or 'sorted-set' with one member per unit, readable
   * in redis-cli. Redis takes about 2 µs to write a member, so the limit may be at most 10,000 with
   * sorted sets.
   * @default 'packed'
   */
  encoding?: Encoding | undefined
  /** Clock that decisions use. @default 'server' */
  clock?: Clock | undefined
  /** Bounds on batched calls. The defaults suit one Redis and one API process. */
  batch?: BatchOptions | undefined
  /**
   * Time (ms) for which a denial from Redis is cached in this process. Resets, refunds and raised
   * limits of other processes take effect within that time. 0 calls Redis every time; 60,000 at
   * most.
   * @default 1_000
   */
  denialTtlMs?: number | undefined
  /**
   * Interval (ms) at which a process reports that it is running, 1,000 to 60,000. This tells each
   * process its share of the limits when Redis is down. Each heartbeat also compares the clocks.
   * With 0 there are no heartbeats; set the limiter's `instances` instead.
   * @default 5_000
   */
  heartbeatMs?: number | undefined
  /**
   * An object with `onInvalid`, or a list of such objects. `onInvalid` is called for stored values
   * that cannot be read; they count as empty.
   * @default none
   */
  observers?: StoreObservers | readonly StoreObservers[] | undefined
}

/** An observer of a store. */
type StoreObservers = Pick<Observers, 'onInvalid'>

/**
 * Bounds on batched calls. Each call takes an equal share of the waiting requests. Larger calls
 * cost less CPU on both sides, but block other users of Redis for longer.
 */
export interface BatchOptions {
  /**
   * Maximum keys per call: 1 to 4,000. Redis needs about half a millisecond for 128. @default 128
   */
  maxKeys?: number | undefined
  /** Maximum bytes of keys per call: 1,024 to 1,048,576. @default 65_536 */
  maxBytes?: number | undefined
  /**
   * Maximum number of calls in flight: 1 to 64. A slow call delays only the other calls in
   * flight. @default 4
   */
  maxInFlight?: number | undefined
}

type Bounds = Readonly<Record<keyof BatchOptions, number>>

/** The options with their defaults. */
export interface RedisStoreSetup extends KeyOptions {
  readonly clock: Clock
  readonly batch: Bounds
  readonly denialTtlMs: number
  readonly heartbeatMs: number
  readonly observers: readonly StoreObservers[]
}

const encodings: readonly Encoding[] = ['packed', 'sorted-set']

const fields: readonly (keyof RedisStoreOptions)[] = [
  ...(['prefix', 'secret', 'digest', 'encoding', 'clock'] as const),
  ...(['batch', 'denialTtlMs', 'heartbeatMs', 'observers'] as const),
]

export function setUpRedisStore(options: RedisStoreOptions): RedisStoreSetup {
  noteRelease('@sluice/redis')
  knownFields(options, 'redisStore', fields)
  const { prefix = 'sluice', secret, clock = 'server', observers } = options
  const { denialTtlMs = 1_000, heartbeatMs = 5_000 } = options
  if (typeof prefix !== 'string' || !/^[A-Za-z0-9._:-]{1,64}$/.test(prefix)) {
    throw invalid(
      { option: 'prefix' },
      prefix,
      '1 to 64 characters of A-Z a-z 0-9 . _ : - (no braces: Sluice sets the Cluster hash tags itself)',
    )
  }
  checkSecret(secret, 'redisStore')
  if (heartbeatMs !== 0 && !isWholeNumber(heartbeatMs, { min: 1_000, max: 60_000 })) {
    throw invalid({ option: 'heartbeatMs' }, heartbeatMs, '0, or a whole number from 1000 to 60000')
  }
  warnAboutGuessableKeys(options)
  return {
    prefix,
    secret,
    digest: flag(options.digest, { option: 'digest' }, true),
    encoding: oneOf(orDefault(options.encoding, 'packed'), { option: 'encoding' }, encodings),
    clock: clockOf(clock),
    batch: batchOf(orDefault(options.batch, {})),
    denialTtlMs: wholeNumber(denialTtlMs, { option: 'denialTtlMs' }, { min: 0, max: 60_000 }),
    heartbeatMs,
    observers: observersOption<StoreObservers>(['onInvalid'])(observers, 'observers'),
  }
}

function batchOf(options: BatchOptions): Bounds {
  knownFields(options, 'batch', ['maxKeys', 'maxBytes', 'maxInFlight'])
  const { maxKeys = 128, maxBytes = 65_536, maxInFlight = 4 } = options
  return {
    maxKeys: wholeNumber(maxKeys, { option: 'batch.maxKeys' }, { min: 1, max: 4_000 }),
    maxBytes: wholeNumber(maxBytes, { option: 'batch.maxBytes' }, { min: 1_024, max: 1_048_576 }),
    maxInFlight: wholeNumber(maxInFlight, { option: 'batch.maxInFlight' }, { min: 1, max: 64 }),
  }
}

function clockOf(clock: unknown): Clock {
  if (typeof clock === 'function') return () => Number(clock())
  return oneOf<'server' | 'client'>(clock, { option: 'clock' }, ['server', 'client'])
}

function warnAboutGuessableKeys({ secret, digest = true }: RedisStoreOptions): void {
  if (globalThis.process?.env.NODE_ENV !== 'production' || (secret !== undefined && digest)) return
  warnOnce(
    `redisStore has no secret: anyone who can read the keys in Redis can guess identities such as IPs; set { secret }`,
  )
}
