import { createLimiter, type Limiter, type LimiterSettings, unlimited } from '@sluice/core'

/**
 * A limiter that decides as one with these options would, and leaves it to its caller to tell observers: one who knows only later what
 * becomes of a denial.
 */
export function quietLimiter(options: LimiterSettings): Limiter {
  const { onResilience: _resilience, ...own } = unobserved(options)
  // Checks bring their policies; an unlimited one of its own counts nothing.
  return createLimiter({ ...own, limit: unlimited, window: '1s' })
}

export function unobserved(options: LimiterSettings): LimiterSettings {
  const { onDecision: _decision, ...others } = options
  return others
}
