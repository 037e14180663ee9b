import { durationMs, invalid } from '@sluice/core'

/** The longest that a timer of Node runs. */
export const longestTimerMs: number = 2 ** 31 - 1

/** Milliseconds of an option that a timer runs for. */
export function timerMs(value: unknown, option: string): number {
  const valueMs = durationMs(value, option)
  if (valueMs <= longestTimerMs) return valueMs
  throw invalid({ option }, value, "at most '24d'")
}

/** The same for what is waited for at most: whoever allows more than a timer can wait for is given that. */
export function waitBoundMs(value: unknown, option: string): number {
  return Math.min(durationMs(value, option), longestTimerMs)
}
