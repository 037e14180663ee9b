import { type AlgorithmSettings, algorithmFields, algorithmSettings } from './algorithm-settings.ts'
import { type AlgorithmName, algorithmNames, type CountingName } from './algorithms/names.ts'
import { type Duration, durationMs } from './duration.ts'
import { type EnforcedShare, enforcedShare, type PolicyMode } from './enforcement.ts'
import { SluiceError } from './errors.ts'
import { type FailureMode, failureModes } from './failure-mode.ts'
import { headroomOf, withoutHeadroom } from './headroom.ts'
import { flag, given, invalid, knownFields, oneOf, show, wholeNumber } from './options.ts'
import { warnOnce } from './warn.ts'

/** The limit of a policy that lets everything pass: it is neither counted nor shown in headers. */
export const unlimited: unique symbol = Symbol.for('@sluice/core/unlimited/1')

/** What a quota counts; the names of the draft's registry. */
export type QuotaUnit = 'requests' | 'content-bytes' | 'concurrent-requests'

/** The fields of a policy, whether or not they fit together. */
export interface PolicyFields {
  /**
   * The name of the quota, in headers, metrics and keys. A named policy is one quota wherever its name is used on
   * one store. Printable ASCII; best is `^[A-Za-z][A-Za-z0-9._-]{0,63}$`.
   * @default none: the policy is private to its limiter, and is shown as `default`
   */
  name?: string
  /** Units that one key may take in any window: a whole number ≥ 0 (0 blocks everything), or `unlimited`. */
  limit: number | typeof unlimited
  /**
   * The share of the limit that is left free, 0 to 0.5: `limit: 100, headroom: 0.1` allows 90, and says so. For the quota of an upstream
   * that others use too, or that counts a little differently.
   * @default 0
   */
  headroom?: number
  /** Length of the window: milliseconds, or a text such as `'10s'`, `'15m'`, `'1d'`. All but `concurrency` need one. */
  window?: Duration
  /** How the units of a window are counted. @default 'sliding-log' */
  algorithm?: AlgorithmName
  /** `fixed-window` only: windows start at whole multiples of their length since 1970 (UTC), not at the first request. */
  align?: 'clock'
  /**
   * `sliding-log` only: times are recorded rounded up to whole multiples of this, which bounds a key to
   * `window / resolution + 1` entries and never admits more. @default 1 ms: exact
   */
  resolution?: Duration
  /** `token-bucket` only: units that may be taken at once after a pause: a whole number ≥ 1. @default the limit */
  burst?: number
  /** `leaky-bucket` only: the most units that wait for their turn: a whole number ≥ 0. @default as many as `maxDelay` lets */
  queue?: number
  /** `leaky-bucket` only: the longest that a request is held. @default '30s'; none beside `queue` */
  maxDelay?: Duration
  /** `concurrency` only: how long a lease runs that nobody renews, since its process died. @default '30s' */
  lease?: Duration
  /** `concurrency` only: the wait that is proposed to a refused client; nobody knows when a request will end. @default '1s' */
  retryAfter?: Duration
  /** Charges this policy for every denied request too, whichever policy denied it. @default false */
  countDenied?: boolean
  /** Enforced, and never listed, named or counted in a response. @default false */
  hidden?: boolean
  /** `'shadow'`: evaluated, counted and reported to `onShadow`, and never enforced. @default 'enforce' */
  mode?: PolicyMode
  /** Enforced for this share of the keys only, and in shadow for all others; a key stays where it is. @default all */
  enforce?: EnforcedShare
  /** What is counted, for clients. @default 'requests'; 'concurrent-requests' for `concurrency` */
  unit?: QuotaUnit
  /**
   * What happens to requests of this policy while the store fails. Of a request with several policies the strictest counts:
   * 'closed', then 'fallback', then 'open'. @default the limiter's
   */
  failureMode?: FailureMode
}

/** A policy needs a window, except with `concurrency`, which counts requests in flight. Compilers describe the last form that may be meant. */
export type WindowForm =
  | { algorithm: 'concurrency'; window?: never }
  | { window: Duration; algorithm?: Exclude<AlgorithmName, 'concurrency'> }

export type PolicyOptions = Omit<PolicyFields, keyof WindowForm> & WindowForm

/** A checked policy, as limiters and stores use it. */
export interface Policy extends AlgorithmSettings {
  /** Identity of the quota within a store: URL-safe text, equal in every process that runs the same code. */
  readonly id: string
  /** What clients, metrics and errors call it. */
  readonly name: string
  /** Whether the user named it, and so shares it. */
  readonly named: boolean
  /** Units per window, or in flight, without the headroom; `Infinity` for `unlimited`. For a penalty, the strikes that lead to a block. */
  readonly limit: number
  /** The share of the declared limit that is left free; of limits that come with a check too. */
  readonly headroom: number
  /** For `concurrency`, how long a lease runs; for a penalty, how long strikes count. */
  readonly windowMs: number
  readonly algorithm: CountingName
  readonly countDenied: boolean
  readonly hidden: boolean
  readonly unit: QuotaUnit
  /** The share of the keys that the policy is enforced for: 1 nearly always, 0 in shadow. */
  readonly enforcedShare: number
  /** `undefined`: the limiter's. */
  readonly failureMode: FailureMode | undefined
}

/** Those that may stand at the top level of a limiter's options; `failureMode` is the limiter's there. */
export const policyFields: readonly (keyof PolicyFields)[] = [
  'name',
  'limit',
  'headroom',
  'window',
  'algorithm',
  ...algorithmFields,
  'countDenied',
  'hidden',
  'mode',
  'enforce',
  'unit',
]

/**
 * Checks the options of one policy.
 * @param where how the user reaches the options, for messages: `policies[0]`, or '' at the top level
 * @throws SluiceError that names the option, its value and the legal range
 */
export function definePolicy(options: PolicyFields, where: string): Policy {
  knownFields(options, where || 'policy', [...policyFields, 'failureMode'])
  const at = (field: string): string => (where ? `${where}.${field}` : field)
  const headroom = headroomOf(options.headroom, at('headroom'))
  const limit = withoutHeadroom(policyLimit(options.limit, at('limit')), headroom)
  const algorithm = oneOf(
    given(options.algorithm, 'sliding-log'),
    { option: at('algorithm') },
    algorithmNames,
  )
  const windowMs = windowOf(options, algorithm, at)
  const settings = algorithmSettings(options, { algorithm, windowMs }, at)
  checkProduct(limit, windowMs, at('limit'))
  checkProduct(settings.burst ?? 0, windowMs, at('burst'))
  if (Number.isFinite(settings.queue)) checkProduct(settings.queue + 1, windowMs, at('queue'))
  const name = options.name === undefined ? undefined : policyName(options.name, at('name'))
  return {
    id: name === undefined ? `~${algorithm}-${limit}-${windowMs}` : escapeName(name),
    name: name ?? 'default',
    named: name !== undefined,
    limit,
    headroom,
    windowMs,
    algorithm,
    ...settings,
    countDenied: countsDenied(options, algorithm, at('countDenied')),
    hidden: flag(options.hidden, { option: at('hidden') }, false),
    unit: oneOf(
      given(options.unit, algorithm === 'concurrency' ? 'concurrent-requests' : 'requests'),
      { option: at('unit') },
      ['requests', 'content-bytes', 'concurrent-requests'],
    ),
    enforcedShare: enforcedShare(options, at),
    failureMode:
      options.failureMode === undefined
        ? undefined
        : oneOf(options.failureMode, { option: at('failureMode') }, failureModes),
  }
}

/**
 * The most units that a window of `windowMs` can count exactly: beyond 2^53 − 1 ms · units doubles lose whole units, and beyond
 * 2^47 − 1 units a packed log loses its totals, which have to tell twice the limit.
 */
export function maxUnits(windowMs: number): number {
  return Math.min(Math.floor(Number.MAX_SAFE_INTEGER / windowMs), 2 ** 47 - 1)
}

/** Ten years: packed logs hold times within 17 years of now. */
const longestWindowMs = 3_650 * 86_400_000

function policyLimit(value: unknown, option: string): number {
  if (value === unlimited) return Number.POSITIVE_INFINITY
  return wholeNumber(value, { option, code: 'SLUICE_LIMIT_INVALID' }, { min: 0 })
}

/** A lease takes the place of the window where units come back when requests end. */
function windowOf(
  options: PolicyFields,
  algorithm: AlgorithmName,
  at: (field: string) => string,
): number {
  if (algorithm !== 'concurrency') return windowMsOf(options.window, at('window'))
  if (options.window === undefined) return windowMsOf(given(options.lease, '30s'), at('lease'))
  const legal = "left out with algorithm 'concurrency', which counts requests in flight"
  throw invalid({ option: at('window') }, options.window, legal)
}

/** The milliseconds of a window, ten years at most. A bare number below 1,000 is warned of: most limiters would take it for seconds. */
export function windowMsOf(value: unknown, option: string): number {
  const windowMs = durationMs(value, option)
  if (windowMs > longestWindowMs) throw invalid({ option }, value, `at most ten years ('3650d')`)
  if (typeof value === 'number' && value < 1_000) {
    warnOnce(
      `${option}: ${value} means ${value} milliseconds; write '${value}s' for seconds, or '${value}ms' if milliseconds are meant`,
      `short ${option}`,
    )
  }
  return windowMs
}

function checkProduct(units: number, windowMs: number, option: string): void {
  if (units === Number.POSITIVE_INFINITY || units <= maxUnits(windowMs)) return
  throw new SluiceError(
    'SLUICE_POLICY_RANGE',
    `${option} (${units}) times the window (${windowMs} ms) must be at most 2^53 − 1, and ${option} at most 2^47 − 1, to stay exact; ` +
      `with this window it can be ${maxUnits(windowMs)} at most`,
  )
}

/** The lease of a request that was refused would never be given back. */
function countsDenied(options: PolicyFields, algorithm: AlgorithmName, option: string): boolean {
  const counts = flag(options.countDenied, { option }, false)
  if (!counts || algorithm !== 'concurrency') return counts
  throw invalid({ option }, counts, "left out with algorithm 'concurrency'")
}

export function policyName(value: unknown, option: string): string {
  if (typeof value === 'string' && /^[\x20-\x7e]{1,256}$/.test(value)) return value
  throw new SluiceError(
    'SLUICE_POLICY_NAME',
    `${option} must be 1 to 256 printable ASCII characters, since headers carry it, but is ${show(value)}`,
  )
}

/** The id of a named policy: injective, and never equal to the id of an unnamed policy, which begins with a tilde. */
export function escapeName(name: string): string {
  return name.replace(
    /[^A-Za-z0-9._-]/g,
    (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}
