/** Milliseconds of a clock that never jumps, unlike `Date.now()`: waits are measured with it. */
export function clockMs(): number {
  return performance.now()
}
