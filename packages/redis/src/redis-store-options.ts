import { flag, type InvalidEvent, invalid, knownFields, oneOf } from '@sluice/core'
import type { Encoding } from './script.ts'

/**
 * Whose clock counts. `server`: Redis' own. `client`: this process', for servers that forbid `TIME` in scripts; clocks of a fleet then
 * have to agree. A function gives whole milliseconds since the epoch, for simulations and tests.
 */
export type Clock = 'server' | 'client' | (() => number)

export interface RedisStoreOptions {
  /** What all keys begin with: 1 to 64 of `A-Z a-z 0-9 . _ -`. @default 'sluice' */
  prefix?: string
  /** Makes the digest of identities an HMAC, so that nobody who reads keys can guess them. @default none */
  secret?: string
  /** false keeps identities readable in keys (escaped, and as long as they are), for debugging. @default true */
  digest?: boolean
  /** How `sliding-log` is stored: 'packed', or 'sorted-set' to be read with redis-cli, one member for every unit. @default 'packed' */
  encoding?: Encoding
  /** Whose clock counts. @default 'server' */
  clock?: Clock
  /** Told when a stored value could not be read, and counted as empty. */
  onInvalid?(event: InvalidEvent): void
}

export interface RedisStoreSetup {
  readonly prefix: string
  readonly secret: string | undefined
  readonly digest: boolean
  readonly encoding: Encoding
  readonly clock: Clock
  readonly onInvalid: ((event: InvalidEvent) => void) | undefined
}

const fields: readonly (keyof RedisStoreOptions)[] = [
  'prefix',
  'secret',
  'digest',
  'encoding',
  'clock',
  'onInvalid',
]

/** Checks the options of a Redis store, and fills in the defaults. */
export function setUpRedisStore(options: RedisStoreOptions): RedisStoreSetup {
  knownFields(options, 'redisStore', fields)
  const { prefix = 'sluice', secret, clock = 'server', onInvalid } = options
  if (typeof prefix !== 'string' || !/^[A-Za-z0-9._-]{1,64}$/.test(prefix)) {
    throw invalid({ option: 'prefix' }, prefix, '1 to 64 characters of A-Z a-z 0-9 . _ -')
  }
  if (secret !== undefined && (typeof secret !== 'string' || secret === '')) {
    // Not shown: it may be most of a secret.
    throw invalid({ option: 'secret' }, typeof secret, 'a non-empty text')
  }
  if (onInvalid !== undefined && typeof onInvalid !== 'function') {
    throw invalid({ option: 'onInvalid' }, onInvalid, 'a function')
  }
  return {
    prefix,
    secret,
    digest: flag(options.digest, { option: 'digest' }, true),
    encoding: oneOf(options.encoding ?? 'packed', { option: 'encoding' }, ['packed', 'sorted-set']),
    clock: clockOf(clock),
    onInvalid,
  }
}

function clockOf(clock: unknown): Clock {
  if (typeof clock === 'function') return () => Number(clock())
  return oneOf<'server' | 'client'>(clock, { option: 'clock' }, ['server', 'client'])
}
