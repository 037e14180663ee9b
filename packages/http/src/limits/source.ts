import {
  andThen,
  invalid,
  isWholeNumber,
  type MaybePromise,
  maxUnits,
  type Policy,
  SluiceError,
  unlimited,
} from '@sluice/core'
import type { HttpRequest } from '../request/exchange.ts'
import type { PerRequest, Report } from '../request/user-functions.ts'

/** A limit as returned by a function of the request. */
export type LimitValue = number | typeof unlimited

/** A limit, or a source of limits: a function, `tiers(…)`, `schedule(…)` or `adaptive(…)`. */
export type LimitOption<Native> = PerRequest<Native, LimitValue> | LimitSource<Native>

/**
 * The limit for a request. `reduced`: it is lower than in quiet times. 'default': no limit was
 * found, so the policy's default is used; this is already reported.
 */
export type FoundLimit = LimitFound | 'default'

interface LimitFound {
  readonly value: LimitValue
  readonly reduced: boolean
  /** True if the policy is in shadow mode for the request. @default as in the policy */
  readonly shadow?: boolean
}

export type LimitFinder<Native> = (
  native: Native,
  report: Report,
  request: HttpRequest,
) => MaybePromise<FoundLimit>

/** A built-in source of limits: `tiers`, `schedule` or `adaptive`. It has its own default. */
export interface LimitSource<Native = unknown> {
  /** Its name in the options. */
  readonly kind: string
  /** `undefined` if it has no default, so that the policy needs a `defaultLimit`. */
  readonly declared: LimitValue | undefined
  /** The largest limit in it. */
  readonly largest: number
  find(native: Native, report: Report, request: HttpRequest): MaybePromise<FoundLimit>
}

export function isLimitSource<Native>(limit: unknown): limit is LimitSource<Native> {
  return typeof limit === 'object' && limit !== null && 'declared' in limit && 'find' in limit
}

/** Returns whether a value may be a limit. The policy checks the range of its window. */
export function isLimitValue(value: unknown): value is LimitValue {
  return value === unlimited || isWholeNumber(value, { min: 0 })
}

export function finderOf<Native>(limit: LimitOption<Native>): LimitFinder<Native> {
  if (isLimitSource<Native>(limit)) return limit.find.bind(limit)
  if (typeof limit !== 'function') {
    const found = unreduced(limit)
    return () => found
  }
  return (native) => andThen(limit(native), unreduced)
}

/** Returns the largest number among limits, not counting `unlimited`. */
export function largestOf(limits: readonly unknown[]): number {
  return limits.reduce<number>((largest, limit) => {
    if (isLimitSource(limit)) return Math.max(largest, limit.largest)
    return typeof limit === 'number' ? Math.max(largest, limit) : largest
  }, 0)
}

function unreduced(value: LimitValue): FoundLimit {
  return { value, reduced: false }
}

/** Checks that a limit has a default if it needs one. @throws SluiceError with the fix */
export function checkDefault<Native>(
  limit: LimitOption<Native> | undefined,
  defaultLimit: number | undefined,
  option: string,
): void {
  const isSource = isLimitSource(limit)
  if (!isPerRequest(limit) || declaredBy(limit) !== undefined) {
    if (defaultLimit === undefined) return
    const reason = isSource
      ? `beside ${limit.kind}, which has its own default`
      : 'unless limit is a function'
    throw invalid({ option }, defaultLimit, `left out ${reason}`)
  }
  if (isWholeNumber(defaultLimit, { min: 0 })) return
  const legal = isSource
    ? `a whole number ≥ 0 beside ${limit.kind} without a fixed default (or add one to it: { …, default: 60 })`
    : 'a whole number ≥ 0 beside a limit function, for when the function returns no limit'
  throw invalid({ option, code: 'SLUICE_LIMIT_INVALID' }, defaultLimit, legal)
}

/** Returns the fixed limit; `undefined` for a function and for a source without a default. */
export function declaredBy<Native>(limit: LimitOption<Native> | undefined): LimitValue | undefined {
  if (isLimitSource(limit)) return limit.declared
  return typeof limit === 'function' ? undefined : limit
}

export function isPerRequest<Native>(
  limit: LimitOption<Native> | undefined,
): limit is LimitOption<Native> {
  return typeof limit === 'function' || isLimitSource(limit)
}

/** @throws SluiceError if a source's limit is too large for the window of its policy */
export function checkLargest<Native>(limit: LimitOption<Native> | undefined, policy: Policy): void {
  const { name, windowMs } = policy
  if (!isLimitSource(limit) || limit.largest <= maxUnits(policy)) return
  throw new SluiceError(
    'SLUICE_POLICY_RANGE',
    `limit of '${name}': ${limit.kind} goes up to ${limit.largest}, but to stay exact with a window of ${windowMs} ms it can be ` +
      `${maxUnits(policy)} at most`,
  )
}
