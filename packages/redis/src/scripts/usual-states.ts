import type { Check, Counting } from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'
import type { Encoding } from '../keys/key-encoder.ts'
import type { QueuedRequest } from '../model/queued-request.ts'
import { usual } from './generated/lua.ts'

/**
 * A module in `lua/usual/`, which decides keys in a usual state: absent, live, full or expired, in
 * the first incarnation and the current format.
 */
type ModuleFile = keyof typeof usual

/** The module for one policy of a list. */
export interface UsualModule {
  readonly file: ModuleFile
  readonly algorithm: Counting
  /** True if denied requests are charged, which only the full algorithm does. */
  readonly countsDenied: boolean
  /** True if processes may hold units: then a key is in a usual state only while none does. */
  readonly hasGrants: boolean
}

export interface StoreSettings {
  readonly encoding: Encoding
  readonly isServerClock: boolean
}

/** Longer logs are lists of blocks, except for keys that already hold a string. */
const maxStringLimit = 128
/** A log in one string stores the times of several windows in 32 bits. */
const maxStringWindowMs = 2 ** 31

/** Returns whether a log is one string. */
export function isShortLog({ policy, limit }: Check): boolean {
  return limit <= maxStringLimit && policy.windowMs <= maxStringWindowMs
}

/** Returns the setting of a check for its Lua algorithm, at about `now` by Redis's clock. */
export function luaSetting(check: Check, now = 0): number | string | undefined {
  return algorithmOf(check.policy).luaSetting?.(check, now)
}

type ModuleOf = (check: Check, settings: StoreSettings) => ModuleFile | undefined

const moduleOfLog: ModuleOf = (check, { encoding }) => {
  if (encoding !== 'packed') return undefined
  return isShortLog(check) ? 'sliding-log-string' : 'sliding-log-blocks'
}

// With another clock, every call sets the TTL.
const moduleOfBucket: ModuleOf = ({ limit }, { isServerClock }) =>
  isServerClock && limit > 0 ? 'token-bucket' : undefined

/** Others have the module with their name, if there is one. */
const modulesOf: { readonly [name in Counting]?: ModuleOf } = {
  'granted-log': moduleOfLog,
  'sliding-log': moduleOfLog,
  // A calendar setting changes over time, but a plan does not.
  'fixed-window': ({ policy }) => (policy.calendar ? undefined : 'fixed-window'),
  'token-bucket': moduleOfBucket,
  'leaky-bucket': moduleOfBucket,
}

function isModule(name: string): name is ModuleFile {
  return Object.hasOwn(usual, name)
}

/** Returns the module for the usual states of a check's key; `undefined` if there is none. */
export function usualOf(check: Check, settings: StoreSettings): UsualModule | undefined {
  const { counting, countDenied } = check.policy
  const own = isModule(counting) ? counting : undefined
  const moduleOf = modulesOf[counting]
  const file = moduleOf ? moduleOf(check, settings) : own
  const traits = {
    algorithm: counting,
    countsDenied: countDenied,
    hasGrants: counting === 'granted-log',
  }
  return file && { file, ...traits }
}

export function usualFields(check: Check): readonly string[] {
  return [check.limit, check.policy.windowMs, luaSetting(check) ?? ''].map(String)
}

/**
 * Returns the setting for an ask that releases or renews one lease; otherwise `undefined`. It names
 * the lease as `lua/algorithms/concurrency.lua` does.
 */
export function leaseSetting({ op, checks }: QueuedRequest): string | undefined {
  const [check] = checks
  const sign = leaseSigns[op]
  if (!sign || !check?.receipt || checks.length > 1) return undefined
  const { policy, cost, limit, receipt } = check
  if (algorithmOf(policy).counts !== 'leases') return undefined
  return `${sign}${receipt.at}:${Math.min(cost, limit)}`
}

/**
 * Returns whether an ask is a charge of one policy that a usual-state module can decide: a charge
 * that fits is recorded and reported like a request.
 */
export function isUsualCharge({ op, checks }: QueuedRequest): boolean {
  const [check] = checks
  if (op !== 'charge' || !check || checks.length > 1) return false
  const { counts, delayMs } = algorithmOf(check.policy)
  return check.cost > 0 && counts === 'units' && delayMs === undefined
}

const leaseSigns: { readonly [op in QueuedRequest['op']]?: string } = {
  refund: '-',
  release: '-',
  renew: '+',
}

/** Returns whether processes may hold units of one of the policies. */
export function mayHaveGrants({ checks }: QueuedRequest): boolean {
  return checks.some(({ policy }) => policy.counting === 'granted-log')
}
