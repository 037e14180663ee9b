import { invalid, isWholeNumber, maxUnits, type Policy, SluiceError } from '@sluice/core'
import type { HttpPolicyOptions } from '../guard/http-policy.ts'
import type { LimitOption, LimitValue } from './source.ts'
import { isLimitSource } from './source.ts'

/** The options that say how much is allowed. */
type Limits<Native> = Pick<HttpPolicyOptions<Native>, 'limit' | 'defaultLimit'>

/**
 * Checks that there is one default for a limit that may not be found, and not two.
 * @throws SluiceError that names the place and the fix
 */
export function checkDefault<Native>(
  { limit, defaultLimit }: Limits<Native>,
  option: string,
): void {
  if (!needsDefault(limit)) {
    if (defaultLimit === undefined) return
    const reason = isLimitSource(limit)
      ? `beside ${limit.kind}, which says itself what stands in`
      : 'unless limit is a function'
    throw invalid({ option }, defaultLimit, `left out ${reason}`)
  }
  if (isWholeNumber(defaultLimit, { min: 0 })) return
  const legal = isLimitSource(limit)
    ? `a whole number ≥ 0 beside ${limit.kind} without a fixed default, or better: give it one, as in { …, default: 60 }`
    : 'a whole number ≥ 0 beside a limit function, for when that yields none'
  throw invalid({ option, code: 'SLUICE_LIMIT_INVALID' }, defaultLimit, legal)
}

/** The limit as core takes it: what stands in, where it depends on the request. */
export function declaredLimit<Native>({ limit, defaultLimit = 0 }: Limits<Native>): LimitValue {
  if (isLimitSource(limit)) return limit.declared ?? defaultLimit
  return typeof limit === 'function' ? defaultLimit : limit
}

/** @throws SluiceError when a limit that stands in a source is too large for the window of its policy */
export function checkLargest<Native>(
  limit: LimitOption<Native> | undefined,
  { name, windowMs }: Policy,
): void {
  if (!isLimitSource(limit) || limit.largest <= maxUnits(windowMs)) return
  throw new SluiceError(
    'SLUICE_POLICY_RANGE',
    `limit of '${name}': ${limit.kind} goes up to ${limit.largest}, but with a window of ${windowMs} ms it can be ` +
      `${maxUnits(windowMs)} at most, to stay exact`,
  )
}

function needsDefault<Native>(limit: LimitOption<Native>): boolean {
  return isLimitSource(limit) ? limit.declared === undefined : typeof limit === 'function'
}
