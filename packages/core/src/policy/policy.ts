import type { CalendarWindow } from '../algorithms/calendar.ts'
import { checkUnits, wholeUnits } from '../algorithms/max-units.ts'
import {
  type AlgorithmName,
  type AlgorithmOptions,
  algorithmFields,
  algorithmNames,
  algorithmSettings,
  algorithms,
} from '../algorithms/table.ts'
import { type FailureMode, failureModes, type Policy, type Reach } from '../model/policy.ts'
import { type Duration, type DurationMs, windowMsOf } from '../options/duration.ts'
import { SluiceError } from '../options/errors.ts'
import {
  checkedElsewhere,
  checkOptions,
  choiceOption,
  flagOption,
  type Option,
  type OptionsOf,
  type RequiredOption,
} from '../options/option-table.ts'
import { invalid, knownFields, oneOf, orDefault, quote } from '../options/options.ts'
import { type AsyncOptions, ledgerSettings } from './ledger-options.ts'

/** The limit of a policy that lets everything pass: it is neither counted nor shown in headers. */
export const unlimited: unique symbol = Symbol.for('@sluice/core/unlimited/1')

/** The options of a policy, apart from those of single algorithms. */
class PolicyTable {
  /**
   * Name of the quota in headers, metrics and keys. All policies with the same name on one store
   * share one count for each key, in all limiters, routes and processes, so they should have one
   * limit too. Printable ASCII; best is `^[A-Za-z][A-Za-z0-9._-]{0,63}$`.
   * @default none: the policy is private to its limiter and shown as `default`
   */
  name?: Option<string> = policyName
  /**
   * Units that one key may take in any window: a whole number ≥ 0 (0 blocks everything), or
   * `unlimited`.
   */
  limit: RequiredOption<number | typeof unlimited, number> = policyLimit
  /**
   * Share of the limit to leave unused, 0 to 0.5: `limit: 100, headroom: 0.1` allows 90, and
   * clients see 90. For the quota of an upstream that others use too, or that counts slightly
   * differently. @default 0
   */
  headroom?: Option<number, number> = headroomOf
  /**
   * Length of the window: milliseconds, or a string such as `'10s'`, `'15m'`, `'1d'`. Required
   * except for `concurrency`. For `fixed-window` also a calendar day, week or month:
   * `{ every: 'month', zone: 'Europe/Rome' }`.
   */
  window?: Option<Duration | DurationMs | CalendarWindow> = checkedElsewhere
  /** Algorithm that counts the units. @default 'sliding-log' */
  algorithm?: Option<AlgorithmName, AlgorithmName> = choiceOption('sliding-log', algorithmNames)
  /** Counts denied requests too, whichever policy denied them. @default false */
  countDenied?: Option<boolean, boolean> = flagOption(false)
  /**
   * Lifetime of a grant. For hot keys, a process takes grants of units from the store and spends
   * them without further calls. At most a tenth of the window; `sliding-log` only. See
   * docs/prefetch.md for its cost.
   * @default none: every request calls the store
   */
  prefetch?: Option<Duration> = checkedElsewhere
  /**
   * Lets work hold units of a key while it runs, and spend them as it goes: `limiter.reserve`. For
   * `sliding-log` and `fixed-window`. See docs/budgets.md.
   * @default false
   */
  reserve?: Option<boolean> = checkedElsewhere
  /**
   * Decides from the last known state of a key, and updates the store afterwards. A key may exceed
   * its limit by up to `maxUncounted` units per process. Not for buckets and `concurrency`. See
   * docs/prefetch.md.
   * @default none: the store decides every request
   */
  async?: Option<AsyncOptions> = checkedElsewhere
  /**
   * Scope of the limit in a `regionalStore`: `'region'` divides it among the regions, `'global'`
   * calls the global store for every request. Other stores have only one scope.
   * @default 'region'
   */
  reach?: Option<Reach, Reach> = choiceOption('region', ['region', 'global'])
  /** Enforces the policy, but never shows it in a response. @default false */
  hidden?: Option<boolean, boolean> = flagOption(false)
  /**
   * `'shadow'` evaluates the policy, counts its units and calls `onShadow`, but refuses nothing.
   * @default 'enforce'
   */
  mode?: Option<PolicyMode, PolicyMode> = choiceOption('enforce', ['enforce', 'shadow'])
  /**
   * Share of the keys for which the policy is enforced. For all others it is in shadow mode. A key
   * does not change sides.
   * @default all
   */
  enforce?: Option<EnforcedShare, number | undefined> = shareOfKeys
  /** Unit that clients see. @default 'requests'; 'concurrent-requests' for `concurrency` */
  unit?: Option<Policy['unit']> = optionalChoice([
    'requests',
    'content-bytes',
    'concurrent-requests',
  ])
  /**
   * Handling of requests under this policy while the store is failing. If policies differ,
   * the strictest mode applies: 'closed', then 'fallback', then 'open'. @default the limiter's
   */
  failureMode?: Option<FailureMode> = optionalChoice(failureModes)
}

/** All fields of a policy, whether or not they fit together. */
export interface PolicyFields extends AlgorithmOptions, OptionsOf<PolicyTable> {}

/**
 * A policy needs a window, except with `concurrency`, which counts requests in flight. The form
 * with a window comes last, because compilers name that one in errors.
 */
export type WindowForm =
  | { algorithm: 'concurrency'; window?: undefined }
  | { algorithm: 'fixed-window'; window: CalendarWindow }
  | { window: Duration | DurationMs; algorithm?: Exclude<AlgorithmName, 'concurrency'> | undefined }

/** Options of a policy. `concurrency` has no window, and all other algorithms need one. */
export type PolicyOptions = Omit<PolicyFields, keyof WindowForm> & WindowForm

/** The fields allowed at the top level of a limiter's options; `failureMode` is the limiter's. */
export const policyFields: readonly string[] = [
  ...Object.keys(new PolicyTable()).filter((field) => field !== 'failureMode'),
  ...algorithmFields,
]

/**
 * Checks the options of one policy.
 * @param where the place of the options, for messages: `policies[0]`, or '' at the top level
 * @throws SluiceError that names the option, its value and the legal range
 */
export function definePolicy(options: PolicyFields, where: string): Policy {
  knownFields(options, where || 'policy', [...policyFields, 'failureMode'])
  const at = (field: string): string => (where ? `${where}.${field}` : field)
  const checked = checkOptions(new PolicyTable(), options, at)
  const { name, headroom, algorithm, reach, hidden, mode, enforce = 1, failureMode } = checked
  const limit = withoutHeadroom(checked.limit, headroom)
  const { counts, options: own } = algorithms[algorithm]
  const windowMs =
    own.windowMs?.(options, at) ?? durationOf(options.window, algorithm, at('window'))
  const settings = algorithmSettings(options, { algorithm, windowMs }, at)
  checkUnits(limit, { windowMs, ...settings }, at('limit'))
  if (mode === 'shadow' && checked.enforce !== undefined) {
    const message = `${at('enforce')} cannot be combined with mode 'shadow', which enforces nothing: remove one of them`
    throw new SluiceError('SLUICE_OPTION_INVALID', message)
  }
  // The lease of a request that was refused would never be given back.
  if (checked.countDenied && counts === 'leases') {
    throw invalid({ option: at('countDenied') }, true, `left out with algorithm '${algorithm}'`)
  }
  return {
    id: name === undefined ? `~${algorithm}-${limit}-${windowMs}` : escapeName(name),
    name: name ?? 'default',
    named: name !== undefined,
    limit,
    limitPerRequest: false,
    headroom,
    windowMs,
    algorithm,
    ...ledgerSettings(options, { algorithm, windowMs, limit }, at),
    ...settings,
    reach,
    countDenied: checked.countDenied,
    hidden,
    unit: checked.unit ?? (counts === 'leases' ? 'concurrent-requests' : 'requests'),
    enforcedShare: mode === 'shadow' ? 0 : enforce,
    failureMode,
  }
}

function durationOf(window: unknown, algorithm: AlgorithmName, option: string): number {
  if (typeof window !== 'object' || window === null) return windowMsOf(window, option)
  const owners = algorithmNames.filter((name) => algorithms[name].options.hasCalendar)
  const legal = `a duration such as '10s' with algorithm '${algorithm}': only '${owners.join("', '")}' counts by the calendar`
  throw invalid({ option }, window, legal)
}

export function policyLimit(value: unknown, option: string): number {
  if (value === unlimited) return Number.POSITIVE_INFINITY
  return wholeUnits(value, { option, code: 'SLUICE_LIMIT_INVALID' }, 0)
}

function policyName(value: unknown, option: string): string | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'string' && /^[\x20-\x7e]{1,256}$/.test(value)) return value
  throw new SluiceError(
    'SLUICE_POLICY_NAME',
    `${option} must be 1 to 256 printable ASCII characters, since it is sent in headers, but is ${quote(value)}`,
  )
}

/** The id of a named policy: injective, and never that of an unnamed one, which starts with `~`. */
function escapeName(name: string): string {
  return name.replace(
    /[^A-Za-z0-9._-]/g,
    (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/** The mode of a policy: it refuses requests, or only reports what it would have refused. */
type PolicyMode = 'enforce' | 'shadow'

/** One of several strings, or none. */
function optionalChoice<T extends string>(legal: readonly T[]): Option<T> {
  return (value, option) => (value === undefined ? undefined : oneOf(value, { option }, legal))
}

/** The share of keys for which a policy is enforced, while it is tried out. */
export interface EnforcedShare {
  /** Share of the keys, 0 to 1. A higher share only adds keys. */
  share: number
}

function shareOfKeys(value: EnforcedShare | undefined, option: string): number | undefined {
  if (value === undefined) return undefined
  knownFields(value, option, ['share'])
  const { share } = value
  if (typeof share === 'number' && share >= 0 && share <= 1) return share
  throw invalid({ option: `${option}.share` }, share, 'a number from 0 (no key) to 1 (all)')
}

/** Shares are in millionths, since 100 · (1 − 0.07) is 92.99999999999999 in floating point. */
export const million = 1_000_000

function headroomOf(value: unknown, option: string): number {
  const headroom = orDefault(value, 0)
  if (typeof headroom === 'number' && headroom >= 0 && headroom <= 0.5) return headroom
  const legal = 'a number from 0 to 0.5, the share of the limit to leave unused: 0.1 for a tenth'
  throw invalid({ option }, headroom, legal)
}

/** Returns a limit without its headroom, rounded down: at least 1, unless the limit is 0. */
export function withoutHeadroom(limit: number, headroom: number): number {
  if (headroom === 0 || limit === 0 || limit === Number.POSITIVE_INFINITY) return limit
  return Math.max(1, partOf(limit, million - Math.round(headroom * million)))
}

/** Returns some millionths of a limit, rounded down. */
export function partOf(limit: number, millionths: number): number {
  // In two parts, so that every product is exact.
  const rest = limit % million
  return ((limit - rest) / million) * millionths + Math.floor((rest * millionths) / million)
}
