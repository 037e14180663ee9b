import type { Check } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import { fractionOf } from '../runtime/hash.ts'

/**
 * Tells whether a check is only evaluated: by the check itself, or by the hash of its policy and
 * key.
 */
function isInShadow({ policy, key, shadow }: Check): boolean {
  return shadow ?? isKeyInShadow(policy, key)
}

function isKeyInShadow({ id, enforcedShare: share }: Policy, key: string): boolean {
  if (share === 1) return false
  return share === 0 || fractionOf(`${id} ${key}`) >= share
}

/** The checks of a request by their purpose. */
export interface DividedChecks<C extends Check> {
  readonly enforced: readonly C[]
  readonly shadows: readonly C[]
}

const none: readonly never[] = []

/** Nearly always all are enforced: then nothing is computed. */
export function divideChecks<C extends Check>(checks: readonly C[]): DividedChecks<C> {
  if (areEnforced(checks)) return { enforced: checks, shadows: none }
  const enforced: C[] = []
  const shadows: C[] = []
  for (const check of checks) {
    if (isInShadow(check)) shadows.push(check)
    else enforced.push(check)
  }
  return { enforced, shadows }
}

/** Tells whether all policies are enforced for every key, as nearly always. */
export function areEnforced(checks: readonly Check[]): boolean {
  return checks.every(isSurelyEnforced)
}

function isSurelyEnforced({ policy, shadow }: Check): boolean {
  return shadow !== true && policy.enforcedShare >= 1
}
