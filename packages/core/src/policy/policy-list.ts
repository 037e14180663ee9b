import { algorithmOf } from '../algorithms/table.ts'
import type { Policy } from '../model/policy.ts'
import { SluiceError } from '../options/errors.ts'
import { givenFields, invalid } from '../options/options.ts'
import { policyFields } from './policy.ts'

/** All policies of a request are decided in one step, which must stay short. */
const mostPolicies = 64

/**
 * Returns the listed policies, or the one that the top-level fields are shorthand for. Each comes
 * with its path for messages ('' at the top level).
 * @typeParam P the options of a policy, which a layer above may extend
 */
export function policyList<P extends object>(
  options: { readonly policies?: readonly P[] | undefined },
  fields: readonly string[] = policyFields,
): readonly (readonly [policy: P, where: string])[] {
  const shorthand = givenFields(options, fields)
  const { policies } = options
  if (policies === undefined) {
    if (shorthand.length === 0) {
      throw new SluiceError(
        'SLUICE_OPTION_INVALID',
        `no policy: give limit and window, as in { limit: 100, window: '1m' }, or a list of policies`,
      )
    }
    return [[Object.fromEntries(shorthand) as P, '']]
  }
  if (!Array.isArray(policies) || policies.length === 0 || policies.length > mostPolicies) {
    throw invalid({ option: 'policies' }, policies, `an array of 1 to ${mostPolicies} policies`)
  }
  if (shorthand[0]) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `${shorthand[0][0]} is shorthand for a single policy, so it cannot be combined with policies: move it into a policy`,
    )
  }
  return policies.map((policy: P, index) => [policy, `policies[${index}]`] as const)
}

/**
 * Checks policies that are decided together. A request that waits in a queue would hold a lease,
 * and so keep others from running.
 * @throws SluiceError if two have one name, or work against each other
 */
export function checkTogether(policies: readonly Policy[]): void {
  for (const [index, { named, id, name }] of policies.entries()) {
    if (!named || policies.findIndex((other) => other.id === id) === index) continue
    throw new SluiceError(
      'SLUICE_POLICY_DUPLICATE',
      `policies: two policies of one limiter have the name '${name}'; give each policy its own name`,
    )
  }
  const counting = policies.find(
    (policy) => policy.countDenied && algorithmOf(policy).counts === 'units',
  )
  if (counting && policies.some(({ thenReset }) => thenReset)) {
    throw new SluiceError(
      'SLUICE_POLICY_COMBINATION',
      `policies: '${counting.name}' counts the requests that a block denies, so a block cannot reset its keys; leave out countDenied or penalty.thenReset`,
    )
  }
  const queue = policies.find((policy) => algorithmOf(policy).delayMs)
  const leases = policies.find((policy) => algorithmOf(policy).counts === 'leases')
  if (!queue || !leases) return
  throw new SluiceError(
    'SLUICE_POLICY_COMBINATION',
    `policies: '${queue.name}' (${queue.algorithm}) holds requests, which would occupy '${leases.name}' (${leases.algorithm}) while they ` +
      `wait; put the queue in a separate limiter, before the other one`,
  )
}
