import { invalid, isWholeNumber } from './options.ts'
import { warnOnce } from './warn.ts'

/**
 * Milliseconds as a whole number ≥ 1, or a whole number with its unit: `'500ms'`, `'10s'`, `'15m'`,
 * `'1h'`, `'1d'`, `'2w'`. Parse a string that only exists at run time, such as an environment
 * variable, with `durationMs(text, 'WINDOW')`.
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd' | 'w'}`

/**
 * The result of `durationMs(text, 'WINDOW')` for a string that only exists at run time. The
 * compiler's message for such a string shows this name.
 */
export type DurationMs = number & { readonly durationMs?: never }

const unitMs = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
])

/** Returns a duration in ms, a whole number ≥ 1. Throws an error that names `option` otherwise. */
export function durationMs(value: unknown, option: string): number {
  const valueMs = typeof value === 'string' ? textMs(value) : value
  if (isWholeNumber(valueMs, { min: 1 })) return valueMs
  throw invalid(
    { option },
    value,
    `whole milliseconds ≥ 1 or a string such as '500ms', '10s', '15m', '1h', '1d' (a whole number with its unit)`,
  )
}

function textMs(text: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,14})([a-z]{1,2})$/.exec(text) ?? []
  return Number(count) * (unitMs.get(unit) ?? Number.NaN)
}

/** Ten years: packed logs store times within 17 years of now. */
const maxWindowMs = 3_650 * 86_400_000

/**
 * Returns the milliseconds of a window, at most ten years. Warns about a bare number below 1,000,
 * which may be meant as seconds.
 */
export function windowMsOf(value: unknown, option: string): number {
  const windowMs = durationMs(value, option)
  if (windowMs > maxWindowMs) throw invalid({ option }, value, `at most ten years ('3650d')`)
  if (typeof value === 'number' && value < 1_000) {
    warnOnce(
      `${option}: ${value} means ${value} milliseconds; write '${value}s' for seconds, or '${value}ms' if you mean milliseconds`,
      `short ${option}`,
    )
  }
  return windowMs
}
