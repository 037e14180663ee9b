import { checkHistory } from '@sluice/testing/histories'

/** The most of some moments, each known to lie in a span of time, that are in one window for certain. A window is open at its end. */
export function mostWithin(
  moments: readonly (number | { readonly start: number; readonly end: number })[],
  windowMs: number,
): number {
  const law = { limit: moments.length, windowMs, toleranceMs: 0 }
  const lines = moments.map((moment) => {
    const span = typeof moment === 'number' ? { start: moment, end: moment } : moment
    return { ...span, process: '', key: '', policy: 'p', decision: 'allowed' } as const
  })
  return checkHistory(lines, { p: law }).fullest
}
