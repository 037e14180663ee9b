/**
 * The delays (ms) that there are queues for. All messages of such a queue wait for the same time,
 * so none waits behind a later one.
 */
const steps = [
  ...[100, 500, 1_000, 2_000, 5_000, 10_000, 30_000],
  ...[60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000],
]

/** Share of a delay by which one step may exceed it. */
const tolerance = 0.1

/**
 * Chooses the step for a delay. A step that is a little longer ends the wait; else the wait goes on
 * after the longest step within the delay.
 * @returns ms, 0 for no delay
 */
export function stepOf(delayMs: number): number {
  if (delayMs <= 0) return 0
  const [shortest = 0] = steps
  const last = steps.find((step) => step >= delayMs && step <= delayMs * (1 + tolerance))
  return last ?? steps.findLast((step) => step <= delayMs) ?? shortest
}
