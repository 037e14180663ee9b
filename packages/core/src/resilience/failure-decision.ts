import { algorithmOf } from '../algorithms/table.ts'
import type { Fallback } from '../ledger/fallback.ts'
import type { Check } from '../model/check.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { FailureMode } from '../model/policy.ts'
import type { PendingAsk } from './pending-ask.ts'

const strictness: { readonly [mode in FailureMode]: number } = { open: 0, fallback: 1, closed: 2 }

/**
 * The wait for clients that were refused because the store failed. The real end of the failure is
 * unknown.
 */
const unavailableRetryMs = 5_000

const passAll = decisionOf([], [], 'open')

const refuseAll: Decision = {
  ...decisionOf([], [], 'closed'),
  allowed: false,
  retryAfterMs: unavailableRetryMs,
}

export function decideWithout(ask: PendingAsk, fallback: Fallback, isDoubtful: boolean): Decision {
  const { op, checks, caller } = ask
  const mode = strictest(checks, caller.failureMode)
  // Units that were admitted on the last known state are bounded in every mode.
  const isUncounted = op === 'charge' && checks.every(({ policy }) => policy.maxUncounted > 0)
  if (mode === 'open' && !isUncounted) return passAll
  // A charge has to be counted in the mode 'closed' too: its units are used already.
  if (mode === 'closed' && op !== 'charge') return refuseAll
  return fallback.decide(ask, caller.instances ?? caller.store.fleet?.instances ?? 1, isDoubtful)
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
