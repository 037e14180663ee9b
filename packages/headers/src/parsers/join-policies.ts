import type { ParsedPolicy } from './parsed-rate-limit.ts'

/**
 * Joins each policy in `RateLimit-Policy` with its state: by name with those in `RateLimit`, or by
 * limit with the single state of the older dialects. If two limiters sent the same name, they wrote
 * both fields in the same order, so the first belongs to the first.
 */
export function joinPolicies(
  policies: readonly ParsedPolicy[],
  states: readonly ParsedPolicy[],
  by: 'name' | 'limit',
): ParsedPolicy[] {
  const waiting = [...states]
  const joined = policies.map((policy) => {
    const index = waiting.findIndex((state) => state[by] === policy[by])
    if (index === -1) return policy
    const [state] = waiting.splice(index, 1)
    return { ...state, ...policy, pk: policy.pk ?? state?.pk }
  })
  return by === 'name' ? [...joined, ...waiting] : [...waiting, ...joined]
}
