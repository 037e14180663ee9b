/** Timers and networks squeeze calls together; this much air keeps a steady stream within its limit. */
const air = 0.1

/** A tenth of a day would be hours. */
const maxAirMs = 2000

export function withAir(ms: number): number {
  return ms + Math.min(ms * air, maxAirMs)
}
