import { createLimiter, type Limiter, type LimiterOptions } from '@sluice/core'

/** A limiter that waits for its store for as long as a busy machine may need: what is tested is what the store decides. */
export function patientLimiter(options: LimiterOptions): Limiter {
  return createLimiter({ deadlineMs: 60_000, ...options })
}
