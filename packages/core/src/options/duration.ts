import ms, { type StringValue } from 'ms'
import { invalid, isWholeNumber } from './options.ts'
import { warnOnce } from './warn.ts'

/**
 * Milliseconds as a whole number ≥ 1, or a whole number with its unit: `'500ms'`, `'10s'`, `'15m'`,
 * `'1h'`, `'1d'`, `'2w'`. A text that only exists at run time, such as an environment variable, is
 * read with `durationMs(text, 'WINDOW')`.
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd' | 'w'}`

/**
 * The result of `durationMs(text, 'WINDOW')` for a text that only exists at run time. The name
 * stands in the compiler's message for such a text.
 */
export type DurationMs = number & { readonly durationMs?: never }

// The library ms also takes '5', '-1s' and '1 yr'. A quota must not depend on such a text.
const strictForm = /^[1-9]\d{0,14}(ms|s|m|h|d|w)$/

/**
 * Returns the milliseconds of a duration, a whole number ≥ 1. Throws an error that names `option`
 * otherwise.
 */
export function durationMs(value: unknown, option: string): number {
  const valueMs =
    typeof value === 'string' && strictForm.test(value) ? ms(value as StringValue) : value
  if (isWholeNumber(valueMs, { min: 1 })) return valueMs
  throw invalid(
    { option },
    value,
    `whole milliseconds ≥ 1 or a text such as '500ms', '10s', '15m', '1h', '1d' (a whole number with its unit)`,
  )
}

/** Ten years: packed logs hold times within 17 years of now. */
const maxWindowMs = 3_650 * 86_400_000

/**
 * Returns the milliseconds of a window, ten years at most. Warns of a bare number below 1,000,
 * which a user may mean as seconds.
 */
export function windowMsOf(value: unknown, option: string): number {
  const windowMs = durationMs(value, option)
  if (windowMs > maxWindowMs) throw invalid({ option }, value, `at most ten years ('3650d')`)
  if (typeof value === 'number' && value < 1_000) {
    warnOnce(
      `${option}: ${value} means ${value} milliseconds; write '${value}s' for seconds, or '${value}ms' if milliseconds are meant`,
      `short ${option}`,
    )
  }
  return windowMs
}
