import { invalid, orDefault } from '../options/options.ts'

/** Shares count in millionths, since 100 · (1 − 0.07) is 92.99999999999999 in doubles. */
const millionths = 1_000_000

/**
 * Checks the share of a limit that is left to others.
 * @throws SluiceError when it is no number from 0 to 0.5
 */
export function headroomOf(value: unknown, option: string): number {
  const headroom = orDefault(value, 0)
  if (typeof headroom === 'number' && headroom >= 0 && headroom <= 0.5) return headroom
  throw invalid(
    { option },
    headroom,
    'a number from 0 to 0.5, the share of the limit that is left free: 0.1 for a tenth',
  )
}

/**
 * Returns a limit without its headroom, rounded down: at least 1, unless the limit is 0. `Infinity`
 * stays as it is.
 */
export function withoutHeadroom(limit: number, headroom: number): number {
  if (headroom === 0 || limit === 0 || limit === Number.POSITIVE_INFINITY) return limit
  const kept = millionths - Math.round(headroom * millionths)
  // In two parts, so that no product leaves what doubles hold exactly.
  const rest = limit % millionths
  const below = ((limit - rest) / millionths) * kept + Math.floor((rest * kept) / millionths)
  return Math.max(1, below)
}
