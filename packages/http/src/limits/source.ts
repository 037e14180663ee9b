import { andThen, isWholeNumber, type MaybePromise, unlimited } from '@sluice/core'
import type { PerRequest } from '../guard/per-request.ts'
import type { Report } from '../guard/report.ts'

/** A limit as a function of the request yields it. */
export type LimitValue = number | typeof unlimited

/** A limit, or how it is found: a function of the framework's request, `tiers(…)`, `schedule(…)` or `adaptive(…)`. */
export type LimitOption<Native> = PerRequest<Native, LimitValue> | LimitSource<Native>

/**
 * What is found for a request. `reduced`: it is lower than it would be in quiet times. 'default': nothing was found, which is
 * reported already, so that the declared default of the policy stands in.
 */
export type FoundLimit = { readonly value: LimitValue; readonly reduced: boolean } | 'default'

/** Finds the limit of a request. */
export type LimitFinder<Native> = (native: Native, report: Report) => MaybePromise<FoundLimit>

/** A limit that Sluice finds itself: `tiers`, `schedule`, `adaptive`. It knows beforehand what stands in when nothing is found. */
export interface LimitSource<Native = unknown> {
  /** What a user calls it. */
  readonly kind: string
  /** `undefined`: it has no default, so the policy needs a `defaultLimit`. */
  readonly declared: LimitValue | undefined
  /** The largest limit that stands in it. */
  readonly largest: number
  find(native: Native, report: Report): MaybePromise<FoundLimit>
}

export function isLimitSource<Native>(limit: unknown): limit is LimitSource<Native> {
  return typeof limit === 'object' && limit !== null && 'declared' in limit && 'find' in limit
}

/** Whether a value may stand for a limit: the range that a window allows is for the policy to check. */
export function isLimitValue(value: unknown): value is LimitValue {
  return value === unlimited || isWholeNumber(value, { min: 0 })
}

/** How the limit of a request is found. */
export function finderOf<Native>(limit: LimitOption<Native>): LimitFinder<Native> {
  if (isLimitSource<Native>(limit)) return (native, report) => limit.find(native, report)
  if (typeof limit !== 'function') {
    const found = unreduced(limit)
    return () => found
  }
  return (native) => andThen(limit(native), unreduced)
}

/** The largest number among limits; `unlimited` is none. */
export function largestOf(limits: readonly unknown[]): number {
  return limits.reduce<number>((largest, limit) => {
    if (isLimitSource(limit)) return Math.max(largest, limit.largest)
    return typeof limit === 'number' ? Math.max(largest, limit) : largest
  }, 0)
}

function unreduced(value: LimitValue): FoundLimit {
  return { value, reduced: false }
}
