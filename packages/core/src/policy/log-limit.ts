import { algorithmOf } from '../algorithms/table.ts'
import type { Check } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import { SluiceError } from '../options/errors.ts'

/** Maximum units per key that a store keeps one by one: a charge may write twice as many. */
const maxLogLimit = 10_000

/** Lowers the limit of a check to the largest log that the store holds. */
export function boundLogLimit<C extends Pick<Check, 'policy' | 'limit'>>(check: C): C {
  const isHeld = !algorithmOf(check.policy).keepsEachUnit || check.limit <= maxLogLimit
  return isHeld ? check : { ...check, limit: maxLogLimit }
}

/**
 * Checks the limit of a policy on a store that keeps each unit separately.
 * @param fix what users can do instead
 * @throws SluiceError for a limit that would block the store
 */
export function checkLogLimit(policy: Policy, fix: string): void {
  const { algorithm, limit, name } = policy
  if (limit === Number.POSITIVE_INFINITY || boundLogLimit({ policy, limit }).limit === limit) return
  throw new SluiceError(
    'SLUICE_POLICY_RANGE',
    `limit of '${name}' (${limit}) must be at most ${maxLogLimit} with algorithm '${algorithm}' on this store, which keeps each unit separately; ` +
      fix,
  )
}
