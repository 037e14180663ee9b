import { algorithmOf } from '../algorithms/table.ts'
import { SluiceError } from '../options/errors.ts'
import { processWide } from '../runtime/process-wide.ts'
import type { Store } from '../store.ts'
import type { Policy } from './policy.ts'

interface Registered {
  /** The policy that others of the name are compared with. */
  policy: Policy
  uses: number
}

/** Registered names by the `space` of their stores: two stores of one Redis share them. */
const registries = processWide(
  '@sluice/core/registries/2',
  () => new WeakMap<object, Map<string, Registered>>(),
)

/**
 * Gives the policies of one limiter their identity on a store. One name is one quota, so it cannot
 * mean two things; an unnamed policy is private, so the second one of a kind gets a number, which
 * is the same in every process that runs the same code.
 * @throws SluiceError when a name already means something else on the store
 */
export function registerPolicies(store: Store, policies: readonly Policy[]): readonly Policy[] {
  const space = store.space ?? store
  const registry = registries.get(space) ?? new Map<string, Registered>()
  registries.set(space, registry)
  for (const policy of policies) if (policy.named) checkName(policy, registry)
  return distinctNames(policies.map((policy) => register(policy, registry)))
}

function register(policy: Policy, registry: Map<string, Registered>): Policy {
  const known = registry.get(policy.id) ?? { policy, uses: 0 }
  registry.set(policy.id, known)
  // A penalty by hand does not say what strikes lead to.
  if (!known.policy.penalty) known.policy = policy
  known.uses += 1
  return policy.named || known.uses === 1 ? policy : { ...policy, id: `${policy.id}-${known.uses}` }
}

function checkName(policy: Policy, registry: Map<string, Registered>): void {
  const known = registry.get(policy.id)
  if (known === undefined || areOne(known.policy, policy)) return
  throw new SluiceError(
    'SLUICE_POLICY_CONFLICT',
    `policies: the name '${policy.name}' is one quota on this store, but is defined as ${describe(known.policy)} and as ` +
      `${describe(policy)}; use two names, or the same algorithm, window, resolution and alignment`,
  )
}

/**
 * Tells whether two policies can share a name. Their limits may differ, since the limit travels
 * with every check.
 */
function areOne(one: Policy, other: Policy): boolean {
  const { agrees } = algorithmOf(one)
  if (one.algorithm !== other.algorithm) return false
  return agrees ? agrees(one, other) : describe(one) === describe(other)
}

function describe(policy: Policy): string {
  return algorithmOf(policy).describe(policy)
}

/**
 * Unnamed policies are all shown as `default`; in one response each item needs a name of its own.
 */
function distinctNames(policies: readonly Policy[]): readonly Policy[] {
  const taken = new Set(policies.filter(({ named }) => named).map(({ name }) => name))
  return policies.map((policy) => {
    if (policy.named) return policy
    let name = policy.name
    for (let number = 2; taken.has(name); number += 1) name = `${policy.name}-${number}`
    taken.add(name)
    return { ...policy, name }
  })
}
