import { SluiceError } from '../options/errors.ts'
import { invalid, isWholeNumber, type OptionLabel } from '../options/options.ts'
import type { CountingCheck } from './algorithm.ts'

/** The most units of any window: above this, the totals of a packed log overflow. */
const mostUnits = 2 ** 47 - 1

interface Window {
  readonly windowMs: number
  readonly calendar?: object | undefined
}

/**
 * The most units that a window can count exactly. Above 2^53 − 1 ms · units, doubles lose whole
 * units, except in calendar windows, which are never divided. Above 2^47 − 1 units, the totals of a
 * packed log overflow, since they hold up to twice the limit.
 */
export function maxUnits({ windowMs, calendar }: Window): number {
  if (calendar) return mostUnits
  return Math.min(Math.floor(Number.MAX_SAFE_INTEGER / windowMs), mostUnits)
}

/**
 * Returns the count after a refund. A count at its maximum has lost units, so refunds change
 * nothing.
 */
export function unitsLeft({ cost, policy }: CountingCheck<object>, count: number): number {
  return count >= maxUnits(policy) ? count : Math.max(0, count - cost)
}

/** Throws if a window cannot count `units` exactly; `Infinity` means no bound. */
export function checkUnits(units: number, window: Window, option: string): void {
  if (units === Number.POSITIVE_INFINITY || units <= maxUnits(window)) return
  throw new SluiceError(
    'SLUICE_POLICY_RANGE',
    `${option} (${units}) times the window (${window.windowMs} ms) must be at most 2^53 − 1, and ${option} at most 2^47 − 1, to stay exact; ` +
      `with this window it can be ${maxUnits(window)} at most`,
  )
}

/**
 * Returns an option that counts units. `checkUnits` knows the window, and rejects larger numbers.
 */
export function wholeUnits(value: unknown, label: OptionLabel, min: number): number {
  if (isWholeNumber(value, { min })) return value
  throw invalid(label, value, `a whole number from ${min} to ${mostUnits}`)
}
