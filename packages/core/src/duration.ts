import ms, { type StringValue } from 'ms'
import { invalid, isWholeNumber } from './options.ts'

/**
 * Milliseconds as a whole number ≥ 1, or a whole number with its unit: `'500ms'`, `'10s'`, `'15m'`, `'1h'`, `'1d'`, `'2w'`. A text that only
 * exists at run time, such as an environment variable, is read with `durationMs(text, 'WINDOW')`.
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd' | 'w'}`

// ms itself also takes '5', '-1s' and '1 yr': a quota must not hang on what such a text might mean.
const strictForm = /^[1-9]\d{0,14}(ms|s|m|h|d|w)$/

/** The milliseconds of a duration, a whole number ≥ 1; throws an error that names `option` otherwise. */
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
