import { algorithms, type Check } from '@sluice/core'
import type { Encoding } from './scripts.ts'

/** The modules in `lua/usual/`: what decides a key that is in a usual state. */
export type UsualName =
  | 'sliding-log-string'
  | 'sliding-log-blocks'
  | 'sliding-counter'
  | 'fixed-window'
  | 'token-bucket'
  | 'leaky-bucket'

/** What is the same for all calls of a store. */
export interface StoreSettings {
  readonly encoding: Encoding
  /** Milliseconds that a key outlives its last unit at least. */
  readonly ttlMargin: number
  readonly isServerClock: boolean
}

/** Longer logs are lists of blocks. What a key holds already is kept, whatever its limit is now. */
const longestString = 128
/** A log in one string holds times in 32 bits, of several windows. */
const longestStringWindowMs = 2 ** 31

/** Whether a log is one string. */
export function isShortLog({ policy, limit }: Check): boolean {
  return limit <= longestString && policy.windowMs <= longestStringWindowMs
}

/** The module that decides the usual states of a check's key; `undefined` where there is none. */
export function usualOf(check: Check, settings: StoreSettings): UsualName | undefined {
  const { policy, limit } = check
  if (policy.countDenied) return undefined
  switch (policy.algorithm) {
    case 'sliding-log':
      if (settings.encoding !== 'packed') return undefined
      return isShortLog(check) ? 'sliding-log-string' : 'sliding-log-blocks'
    case 'token-bucket':
    case 'leaky-bucket':
      return settings.isServerClock && limit > 0 ? policy.algorithm : undefined
    case 'sliding-counter':
    case 'fixed-window':
      return policy.algorithm
    default:
      return undefined
  }
}

/** How long (ms) a log's key lives after a write: a share of the window longer than it must, so that it has to be set only once in that share. */
export function logTtlMs({ policy }: Check, settings: StoreSettings): number {
  // A clock that is not Redis' own may be set back within a share.
  const slack = Math.ceil(policy.windowMs / (settings.isServerClock ? 4 : 2))
  return policy.windowMs + slack + settings.ttlMargin + policy.resolutionMs - 1
}

/** The four numbers that a module uses (`use`): of a check without limit and window, which come first. */
export function usualFields(
  name: UsualName | 'penalty',
  check: Check,
  settings: StoreSettings,
): readonly number[] {
  const { policy, limit } = check
  const { ttlMargin } = settings
  switch (name) {
    case 'sliding-log-string':
    case 'sliding-log-blocks':
      return [limit, policy.windowMs, policy.resolutionMs, logTtlMs(check, settings)]
    case 'fixed-window':
      return [limit, policy.windowMs, policy.clockAligned ? 1 : 0, ttlMargin]
    case 'token-bucket':
    case 'leaky-bucket':
      return [limit, policy.windowMs, capacityOf(check), ttlMargin]
    case 'sliding-counter':
    case 'penalty':
      return [limit, policy.windowMs, ttlMargin, 0]
  }
}

/** The level of a bucket, in units · ms; the limit of all others. */
export function capacityOf(check: Check): number {
  return algorithms[check.policy.algorithm].capacityLevel?.(check) ?? check.limit
}
