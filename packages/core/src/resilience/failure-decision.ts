import { algorithmOf } from '../algorithms/table.ts'
import type { Fallback } from '../ledger/fallback.ts'
import type { Check } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { FailureMode } from '../model/policy.ts'
import type { PendingAsk } from './pending-ask.ts'

const strictness: { readonly [mode in FailureMode]: number } = { open: 0, fallback: 1, closed: 2 }

/**
 * The wait for clients that were refused because the store failed. The real end of the failure is
 * unknown.
 */
const unavailableRetryMs = 5_000

const passAll: Decision = {
  allowed: true,
  outcomes: [],
  retryAfterMs: 0,
  delayMs: 0,
  source: 'open',
}

const refuseAll: Decision = {
  allowed: false,
  outcomes: [],
  retryAfterMs: unavailableRetryMs,
  delayMs: 0,
  source: 'closed',
}

export function decideWithout(
  { op, checks, caller }: PendingAsk,
  fallback: Fallback,
  isDoubtful: boolean,
): Decision {
  const mode = strictest(checks, caller.failureMode)
  // Units that were admitted on the last known state are bounded in every mode.
  const isUncounted = op === 'charge' && checks.every(({ policy }) => policy.maxUncounted > 0)
  if (mode === 'open' && !isUncounted) return passAll
  // A charge has to be counted in the mode 'closed' too: its units are used already.
  if (mode === 'closed' && op !== 'charge') return refuseAll
  const instances = caller.instances ?? caller.store.fleet?.instances ?? 1
  return fallback.decide({ op, checks, instances, isDoubtful })
}

/**
 * Returns the failure mode of a request: the strictest mode of its policies. A policy without a
 * mode has the limiter's. The mode of a penalty does not count.
 */
function strictest(checks: readonly Check[], ofLimiter: FailureMode): FailureMode {
  let found: FailureMode | undefined
  for (const { policy } of checks) {
    if (algorithmOf(policy).counts === 'strikes') continue
    const mode = policy.failureMode ?? ofLimiter
    if (!found || strictness[mode] > strictness[found]) found = mode
  }
  return found ?? ofLimiter
}
