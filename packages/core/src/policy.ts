import { type AlgorithmName, algorithmNames } from './algorithms/names.ts'
import { type Duration, durationMs } from './duration.ts'
import { SluiceError } from './errors.ts'
import { flag, invalid, knownFields, oneOf, show, wholeNumber } from './options.ts'

/** The limit of a policy that lets everything pass: it is neither counted nor shown in headers. */
export const unlimited: unique symbol = Symbol('sluice.unlimited')

/** What a quota counts; the names of the draft's registry. */
export type QuotaUnit = 'requests' | 'content-bytes' | 'concurrent-requests'

export interface PolicyOptions {
  /**
   * The name of the quota, in headers, metrics and keys. A named policy is one quota wherever its name is used on
   * one store. Printable ASCII; best is `^[A-Za-z][A-Za-z0-9._-]{0,63}$`.
   * @default none: the policy is private to its limiter, and is shown as `default`
   */
  name?: string
  /** Units that one key may take in any window: a whole number ≥ 0 (0 blocks everything), or `unlimited`. */
  limit: number | typeof unlimited
  /** Length of the window: milliseconds, or a text such as `'10s'`, `'15m'`, `'1d'`. */
  window: Duration
  /** How the units of a window are counted. @default 'sliding-log' */
  algorithm?: AlgorithmName
  /** `fixed-window` only: windows start at whole multiples of their length since 1970 (UTC), not at the first request. */
  align?: 'clock'
  /**
   * `sliding-log` only: times are recorded rounded up to whole multiples of this, which bounds a key to
   * `window / resolution + 1` entries and never admits more. @default 1 ms: exact
   */
  resolution?: Duration
  /** Charges this policy for every denied request too, whichever policy denied it. @default false */
  countDenied?: boolean
  /** Enforced, and never listed, named or counted in a response. @default false */
  hidden?: boolean
  /** What is counted, for clients. @default 'requests' */
  unit?: QuotaUnit
}

/** A checked policy, as limiters and stores use it. */
export interface Policy {
  /** Identity of the quota within a store: URL-safe text, equal in every process that runs the same code. */
  readonly id: string
  /** What clients, metrics and errors call it. */
  readonly name: string
  /** Whether the user named it, and so shares it. */
  readonly named: boolean
  /** Units per window; `Infinity` for `unlimited`. */
  readonly limit: number
  readonly windowMs: number
  readonly algorithm: AlgorithmName
  /** Whether windows start at multiples of `windowMs` since the epoch. */
  readonly clockAligned: boolean
  readonly resolutionMs: number
  readonly countDenied: boolean
  readonly hidden: boolean
  readonly unit: QuotaUnit
}

export const policyFields: readonly (keyof PolicyOptions)[] = [
  'name',
  'limit',
  'window',
  'algorithm',
  'align',
  'resolution',
  'countDenied',
  'hidden',
  'unit',
]

/**
 * Checks the options of one policy.
 * @param where how the user reaches the options, for messages: `policies[0]`, or '' at the top level
 * @throws SluiceError that names the option, its value and the legal range
 */
export function definePolicy(options: PolicyOptions, where: string): Policy {
  knownFields(options, where || 'policy', policyFields)
  const at = (field: string): string => (where ? `${where}.${field}` : field)
  const limit = policyLimit(options.limit, at('limit'))
  const windowMs = windowOf(options.window, at('window'))
  checkProduct(limit, windowMs, at)
  const algorithm = oneOf(
    options.algorithm ?? 'sliding-log',
    { option: at('algorithm') },
    algorithmNames,
  )
  const name = options.name === undefined ? undefined : policyName(options.name, at('name'))
  return {
    id: name === undefined ? `~${algorithm}-${limit}-${windowMs}` : escapeName(name),
    name: name ?? 'default',
    named: name !== undefined,
    limit,
    windowMs,
    algorithm,
    clockAligned: alignment(options, algorithm, at('align')),
    resolutionMs: resolution(options, { algorithm, windowMs }, at('resolution')),
    countDenied: flag(options.countDenied, { option: at('countDenied') }, false),
    hidden: flag(options.hidden, { option: at('hidden') }, false),
    unit: oneOf(options.unit ?? 'requests', { option: at('unit') }, [
      'requests',
      'content-bytes',
      'concurrent-requests',
    ]),
  }
}

/**
 * The most units that a window of `windowMs` can count exactly: beyond 2^53 − 1 ms · units doubles lose whole units, and beyond
 * 2^48 − 1 units a packed log loses its totals.
 */
export function maxUnits(windowMs: number): number {
  return Math.min(Math.floor(Number.MAX_SAFE_INTEGER / windowMs), 2 ** 48 - 1)
}

/** Ten years: packed logs hold times within 17 years of now. */
const longestWindowMs = 3_650 * 86_400_000

function policyLimit(value: unknown, option: string): number {
  if (value === unlimited) return Number.POSITIVE_INFINITY
  return wholeNumber(value, { option, code: 'SLUICE_LIMIT_INVALID' }, { min: 0 })
}

function windowOf(value: unknown, option: string): number {
  const windowMs = durationMs(value, option)
  if (windowMs <= longestWindowMs) return windowMs
  throw invalid({ option }, value, `at most ten years ('3650d')`)
}

function checkProduct(limit: number, windowMs: number, at: (field: string) => string): void {
  if (limit === Number.POSITIVE_INFINITY || limit <= maxUnits(windowMs)) return
  throw new SluiceError(
    'SLUICE_POLICY_RANGE',
    `${at('limit')} (${limit}) times ${at('window')} (${windowMs} ms) must be at most 2^53 − 1, and the limit at most 2^48 − 1, to stay exact; ` +
      `with this window the limit can be ${maxUnits(windowMs)} at most`,
  )
}

function policyName(value: unknown, option: string): string {
  if (typeof value === 'string' && /^[\x20-\x7e]{1,256}$/.test(value)) return value
  throw new SluiceError(
    'SLUICE_POLICY_NAME',
    `${option} must be 1 to 256 printable ASCII characters, since headers carry it, but is ${show(value)}`,
  )
}

/** Injective, and never equal to the id of an unnamed policy, which begins with a tilde. */
function escapeName(name: string): string {
  return name.replace(
    /[^A-Za-z0-9._-]/g,
    (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

function alignment(options: PolicyOptions, algorithm: AlgorithmName, option: string): boolean {
  if (options.align === undefined) return false
  oneOf(options.align, { option }, ['clock'])
  if (algorithm === 'fixed-window') return true
  throw invalid(
    { option },
    options.align,
    `left out with algorithm '${algorithm}': only 'fixed-window' has it`,
  )
}

function resolution(
  options: PolicyOptions,
  policy: Pick<Policy, 'algorithm' | 'windowMs'>,
  option: string,
): number {
  if (options.resolution === undefined) return 1
  const resolutionMs = durationMs(options.resolution, option)
  if (policy.algorithm !== 'sliding-log') {
    throw invalid(
      { option },
      options.resolution,
      `left out with algorithm '${policy.algorithm}': only 'sliding-log' has it`,
    )
  }
  if (resolutionMs > policy.windowMs) {
    throw invalid({ option }, options.resolution, `at most the window (${policy.windowMs} ms)`)
  }
  return resolutionMs
}
