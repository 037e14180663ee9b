import { seededRandom } from '../harness/random.ts'

/** One request of recorded-like traffic. */
export interface Arrival {
  readonly atMs: number
  readonly client: string
}

export interface TraceOptions {
  readonly durationMs: number
  readonly clients: number
  /** Of all clients together. */
  readonly requestsPerSecond: number
  readonly seed: number
}

const meanBurst = 4
const gapMs = 5

/**
 * Clients of unequal weight (Zipf: the second asks half as often as the first, the third a third), each of which asks in bursts
 * (of geometric size) and thinks in between (exponentially).
 */
export function trace({ durationMs, clients, requestsPerSecond, seed }: TraceOptions): Arrival[] {
  const random = seededRandom(seed)
  const exponential = (mean: number): number => -Math.log(1 - random()) * mean
  const weights = Array.from({ length: clients }, (_, index) => 1 / (index + 1))
  const allWeights = weights.reduce((sum, weight) => sum + weight, 0)
  const arrivals: Arrival[] = []
  for (const [index, weight] of weights.entries()) {
    const perMs = (requestsPerSecond * weight) / allWeights / 1000
    const thinkMs = Math.max(1, meanBurst / perMs - (meanBurst - 1) * gapMs)
    const client = `client-${index}`
    // Clients do not all begin with a burst at once.
    let atMs = random() * thinkMs - thinkMs / 2
    while (atMs < durationMs) {
      if (atMs >= 0) arrivals.push({ atMs, client })
      atMs += random() < 1 / meanBurst ? exponential(thinkMs) : exponential(gapMs)
    }
  }
  return arrivals.sort((a, b) => a.atMs - b.atMs)
}
