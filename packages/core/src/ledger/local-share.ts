import { shareOf } from '../algorithms/bucket.ts'
import { algorithmOf } from '../algorithms/table.ts'
import type { Check } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { Outcome } from '../model/store.ts'

interface Share {
  readonly instances: number
  readonly policy: Policy
}

const shares = new WeakMap<Policy, Share>()

/**
 * Returns a check as one of `instances` processes decides it alone. It has a share of the limit, so
 * that a fleet without its store admits about the limit together. The share is at least 1, unless
 * the limit is 0.
 */
export function localCheck(check: Check, instances: number): Check {
  // Strikes are counted where they happen, and a client that stays below their number must not be
  // blocked.
  if (instances === 1 || algorithmOf(check.policy).counts === 'strikes') return check
  return {
    ...check,
    policy: localPolicy(check.policy, instances),
    limit: shareOf(check.limit, instances),
  }
}

/** Returns the outcome for clients: the policy as they know it, with the local limit. */
export function localOutcome(outcome: Outcome, { policy }: Pick<Check, 'policy'>): Outcome {
  return outcome.policy === policy ? outcome : { ...outcome, policy }
}

/** Returns a policy with this process' share of its bucket. */
function localPolicy(policy: Policy, instances: number): Policy {
  const known = shares.get(policy)
  if (known?.instances === instances) return known.policy
  const divided = algorithmOf(policy).divide?.(policy, instances)
  if (!divided) return policy
  const local = { ...policy, ...divided }
  shares.set(policy, { instances, policy: local })
  return local
}
