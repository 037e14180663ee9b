import type { Ask, Check, Counting, StoreOp } from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'
import type { Encoding } from '../keys/key-encoder.ts'
import type { algorithms, usual } from './generated/lua.ts'

/** A file of `lua/algorithms/`. */
export type AlgorithmFile = keyof typeof algorithms

/**
 * A module in `lua/usual/`, which decides a key in a usual state: absent, live, full or expired, in
 * the first incarnation, in today's format.
 */
interface Module {
  readonly file: keyof typeof usual
  /**
   * Further arguments of the whole algorithm: whether a log is one string, and whether the third
   * number is the level of a bucket.
   */
  readonly traits?: string
}

/** The module for one policy of a list. */
export interface UsualModule extends Module {
  readonly algorithm: Counting
  /** True if a request that is denied has to be charged, which only the whole algorithm does. */
  readonly countsDenied: boolean
  /** True if processes may hold units: then a key is in a usual state while none does. */
  readonly hasGrants: boolean
}

export interface StoreSettings {
  readonly encoding: Encoding
  readonly isServerClock: boolean
}

/** Longer logs are lists of blocks, but for keys that hold a string already. */
const maxStringLimit = 128
/** A log in one string holds times in 32 bits, of several windows. */
const maxStringWindowMs = 2 ** 31

/** Tells whether a log is one string. */
export function isShortLog({ policy, limit }: Check): boolean {
  return limit <= maxStringLimit && policy.windowMs <= maxStringWindowMs
}

/** The level of a bucket, in units · ms; the limit of all others. */
export function capacityOf(check: Check): number {
  return algorithmOf(check.policy).capacityLevel?.(check) ?? check.limit
}

/** The files of an algorithm in Lua. */
interface LuaTwin {
  /** The files in `lua/algorithms/`, in the order in which they need each other. */
  files(encoding: Encoding): readonly AlgorithmFile[]
  /** The modules for the usual states. Left out where the whole algorithm decides every state. */
  readonly usual?: UsualStates
}

interface UsualStates {
  /** Returns `undefined` if the whole algorithm has to decide. */
  moduleOf(check: Check, settings: StoreSettings): Module | undefined
  /** Returns the setting that the module uses beside the limit and the window. */
  setting(check: Check): number | string
  /** The setting that the module assumes where none is told. */
  usualSetting(check: Check): number | string
  /** True if a charge that fits is recorded and reported as a request is. */
  readonly hasCharges?: boolean
}

const bucketStates: UsualStates = {
  // With another clock the time to live is set every time.
  moduleOf: ({ limit }, { isServerClock }) =>
    isServerClock && limit > 0 ? { file: 'token-bucket', traits: 'has_level = true' } : undefined,
  setting: capacityOf,
  usualSetting: ({ policy, limit }) => policy.windowMs * limit,
}

const stringLog: Module = { file: 'sliding-log-string', traits: 'is_short = true' }
const blockLog: Module = { file: 'sliding-log-blocks', traits: 'is_short = false' }

const log: LuaTwin = {
  files: (encoding) => [
    'sliding-log',
    ...(encoding === 'packed'
      ? (['sliding-log-string', 'sliding-log-blocks', 'sliding-log-packed'] as const)
      : (['sliding-log-sorted-set'] as const)),
  ],
  usual: {
    moduleOf(check, { encoding }) {
      if (encoding !== 'packed') return undefined
      return isShortLog(check) ? stringLog : blockLog
    },
    setting: ({ policy }) => policy.resolutionMs,
    usualSetting: () => 1,
    hasCharges: true,
  },
}

/** An algorithm of one file, whose module is one for all policies. */
function twin(
  file: AlgorithmFile & Module['file'],
  own: Partial<Pick<UsualStates, 'setting' | 'hasCharges'>> = {},
): LuaTwin {
  const usual = { moduleOf: () => ({ file }), setting: () => 0, usualSetting: () => 0, ...own }
  return { files: () => [file], usual }
}

const luaTwins: { readonly [name in Counting]: LuaTwin } = {
  // Only scripts for grants have a further file.
  'held-log': log,
  'sliding-log': log,
  'sliding-counter': twin('sliding-counter', { hasCharges: true }),
  'fixed-window': twin('fixed-window', {
    setting: ({ policy }) => (policy.clockAligned ? 1 : 0),
    hasCharges: true,
  }),
  'token-bucket': { files: () => ['token-bucket'], usual: { ...bucketStates, hasCharges: true } },
  'leaky-bucket': { files: () => ['token-bucket', 'leaky-bucket'], usual: bucketStates },
  concurrency: twin('concurrency'),
  // Always beside other policies, where no setting is left out.
  penalty: twin('penalty', {
    setting: ({ policy: { penalty } }) =>
      penalty ? `${penalty.forMs};${penalty.factor};${penalty.maxMs}` : '',
  }),
}

/**
 * Returns the files in `lua/algorithms/`, each once.
 * @param names algorithms that the script may meet; `undefined` for all
 */
export function algorithmFiles(
  encoding: Encoding,
  names?: readonly Counting[],
): readonly AlgorithmFile[] {
  const twins = names?.map((name) => luaTwins[name]) ?? Object.values(luaTwins)
  return [...new Set(twins.flatMap(({ files }) => files(encoding)))]
}

/** The module that decides the usual states of a check's key; `undefined` where there is none. */
export function usualOf(check: Check, settings: StoreSettings): UsualModule | undefined {
  const { counting, countDenied, prefetchMs } = check.policy
  const found = luaTwins[counting].usual?.moduleOf(check, settings)
  const traits = { algorithm: counting, countsDenied: countDenied, hasGrants: prefetchMs > 0 }
  return found && { ...found, ...traits }
}

export function usualFields(check: Check): readonly string[] {
  const { policy, limit } = check
  return [limit, policy.windowMs, luaTwins[policy.counting].usual?.setting(check) ?? 0].map(String)
}

/**
 * Returns the setting for an ask that gives back or renews one lease; `undefined` for all others.
 * It names the lease as `lua/algorithms/concurrency.lua` does.
 */
export function leaseSetting({ op, checks }: Ask): string | undefined {
  const [check] = checks
  const sign = leaseSigns[op]
  if (!sign || !check?.receipt || checks.length > 1) return undefined
  const { policy, cost, limit, receipt } = check
  if (algorithmOf(policy).counts !== 'leases') return undefined
  return `${sign}${receipt.at}:${Math.min(cost, limit)}`
}

/** Tells whether an ask is a charge of one policy, whose usual states a module decides. */
export function isUsualCharge({ op, checks }: Ask): boolean {
  const [check] = checks
  if (op !== 'charge' || !check || checks.length > 1) return false
  return check.cost > 0 && luaTwins[check.policy.counting].usual?.hasCharges === true
}

const leaseSigns: { readonly [op in StoreOp]?: string } = { refund: '-', release: '-', renew: '+' }

/** Tells whether the setting of a module may be left out. */
export function hasUsualSetting(check: Check): boolean {
  const { usual } = luaTwins[check.policy.counting]
  return usual?.setting(check) === usual?.usualSetting(check)
}

/** Tells whether processes may hold units of one of the policies. */
export function mayHaveGrants({ checks }: Ask): boolean {
  return checks.some(({ policy }) => policy.prefetchMs > 0)
}
