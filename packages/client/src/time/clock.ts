/** Milliseconds of a clock that never jumps, unlike `Date.now()`: waits are measured with it. */
export function clockMs(): number {
  return performance.now()
}

/** A time that does not come. */
export const never: number = Number.POSITIVE_INFINITY
