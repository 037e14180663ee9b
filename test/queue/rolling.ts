/** The most of some times, in any order, that lie in one window, which is open at its end. */
export function mostWithin(times: readonly number[], windowMs: number): number {
  const sorted = [...times].sort((a, b) => a - b)
  let most = 0
  let first = 0
  for (const [last, time] of sorted.entries()) {
    while ((sorted[first] ?? time) <= time - windowMs) first += 1
    most = Math.max(most, last - first + 1)
  }
  return most
}
