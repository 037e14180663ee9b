import type { CheckLimiter, Decision } from '@sluice/core'
import { vi } from 'vitest'
import { TroubledStore } from '../core/resilience/troubled-store.ts'
import { checkOf, type SomeOptions } from '../support/patient-limiter.ts'

/** A store that grants units. Its limiters wait for it as long as it takes. */
export class GrantingStore extends TroubledStore {
  denials = { ttlMs: 0 }

  override limiter(options: SomeOptions): CheckLimiter {
    return super.limiter({ instances: 1, deadlineMs: 60_000, ...options })
  }
}

/** Consumes of the key `k`, with a limit of its own. */
export async function consume(
  limiter: CheckLimiter,
  own: { cost?: number; limit?: number } = {},
): Promise<Decision> {
  return limiter.decide([checkOf(limiter.policies[0], own)])
}

/** Consumes units one by one, at even distances. Returns the number of admitted ones. */
export async function consumeFor(
  limiter: CheckLimiter,
  { ms, everyMs, ...check }: { ms: number; everyMs: number; limit?: number },
): Promise<number> {
  let allowed = 0
  for (let i = 0; i < ms / everyMs; i += 1) {
    if ((await consume(limiter, check)).allowed) allowed += 1
    await vi.advanceTimersByTimeAsync(everyMs)
  }
  return allowed
}
