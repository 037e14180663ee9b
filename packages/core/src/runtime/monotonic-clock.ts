declare const performance: { now(): number }

/** Milliseconds of a clock that never steps, since some moment. */
export function monotonicMs(): number {
  return performance.now()
}
