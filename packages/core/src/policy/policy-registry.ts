import { algorithmOf } from '../algorithms/table.ts'
import type { Policy } from '../model/policy.ts'
import type { Store } from '../model/store.ts'
import { SluiceError } from '../options/errors.ts'
import { processWide } from '../runtime/process-wide.ts'

interface Registered {
  /** The policy with which others of the same name are compared. */
  policy: Policy
  /** One entry per policy of this kind in use. */
  readonly numbers: Set<number>
}

/** One policy in use. */
interface Registration {
  readonly registry: Map<string, Registered>
  readonly policy: Policy
  readonly number: number
}

/** Registered names by the `space` of their stores: two stores of one Redis share them. */
const registries = processWide(
  '@sluice/core/registries/4',
  () => new WeakMap<object, Map<string, Registered>>(),
)

/** The set of policies for which limiters are being created. */
const collecting = processWide('@sluice/core/collecting/1', () => ({
  now: undefined as Registrations | undefined,
}))

/** The version of a set of policies that another set may replace. */
export interface PolicySetVersion {
  /** Identifies the version, in every process. */
  readonly id: string
  /** False once another set has replaced it. */
  readonly isInForce: boolean
  /** The kill switch: only count, or let every request pass uncounted. @default 'none' */
  readonly kill?: 'none' | 'shadow' | 'off'
}

/** Traits shared by all policies of a set. */
interface SetTraits extends Partial<Pick<PolicySetVersion, 'id' | 'kill'>> {
  /** A string in the ids of named policies: a name with another string starts a new count. */
  readonly suffixes?: ReadonlyMap<string, string>
}

/** The registrations of a set of policies. When the set ends, its names are released. */
export class Registrations implements PolicySetVersion {
  readonly id: string
  readonly kill: NonNullable<PolicySetVersion['kill']>
  readonly #suffixes: SetTraits['suffixes']
  readonly #registrations: Registration[] = []
  isInForce = true

  constructor({ id = '', kill = 'none', suffixes }: SetTraits = {}) {
    this.id = id
    this.kill = kill
    this.#suffixes = suffixes
  }

  /** The policies of the set, each quota once. */
  get policies(): readonly Policy[] {
    const policies = this.#registrations.map(({ policy, number }) => numbered(policy, number))
    return [...new Map(policies.map((policy) => [policy.id, policy])).values()]
  }

  /** Creates limiters whose policies belong to this set. `make` must be synchronous. */
  collect<T>(make: () => T): T {
    const before = collecting.now
    collecting.now = this
    try {
      return make()
    } finally {
      collecting.now = before
    }
  }

  /** Returns a policy as it is in this set. */
  adapt(policy: Policy): Policy {
    const suffix = policy.named ? this.#suffixes?.get(policy.name) : undefined
    return {
      ...policy,
      ...(suffix === undefined ? {} : { id: `${policy.id}~${suffix}` }),
      ...(this.kill === 'shadow' ? { enforcedShare: 0 } : {}),
    }
  }

  add(registration: Registration): void {
    this.#registrations.push(registration)
  }

  /** Releases the names. */
  end(): void {
    this.isInForce = false
    for (const { registry, policy, number } of this.#registrations) {
      const known = registry.get(policy.id)
      known?.numbers.delete(number)
      if (known?.numbers.size === 0) registry.delete(policy.id)
    }
  }

  /** Claims the names again, unless they were replaced. */
  resume(): void {
    this.isInForce = true
    for (const { registry, policy, number } of this.#registrations) {
      registered(policy, registry).numbers.add(number)
    }
  }
}

/** The version for which limiters are being created; `undefined` for policies defined in code. */
export function versionBeingMade(): PolicySetVersion | undefined {
  return collecting.now
}

/**
 * Assigns the policies of one limiter their identity on a store. One name is one quota, so it
 * cannot mean two things. An unnamed policy is private, so the second one of a kind gets a number.
 * The number is the same in every process that runs the same code.
 * @throws SluiceError if a name already means something else on the store
 */
export function registerPolicies(store: Store, given: readonly Policy[]): readonly Policy[] {
  const set = collecting.now
  const policies = set ? given.map((policy) => set.adapt(policy)) : given
  const space = store.space ?? store
  const registry = registries.get(space) ?? new Map<string, Registered>()
  registries.set(space, registry)
  for (const policy of policies) if (policy.named) checkName(policy, registry)
  return distinctNames(policies.map((policy) => register(policy, registry)))
}

function registered(policy: Policy, registry: Map<string, Registered>): Registered {
  const known = registry.get(policy.id) ?? { policy, numbers: new Set() }
  registry.set(policy.id, known)
  return known
}

function register(policy: Policy, registry: Map<string, Registered>): Policy {
  const known = registered(policy, registry)
  // A manual penalty does not define what strikes lead to.
  if (!known.policy.penalty) known.policy = policy
  let number = known.numbers.size + 1
  for (let free = 1; free < number; free += 1) if (!known.numbers.has(free)) number = free
  known.numbers.add(number)
  collecting.now?.add({ registry, policy, number })
  return numbered(policy, number)
}

/** A private policy that is not the first of its kind has a number in its id. */
function numbered(policy: Policy, number: number): Policy {
  return policy.named || number === 1 ? policy : { ...policy, id: `${policy.id}-${number}` }
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

/** Returns whether two policies can share a name. Limits may differ: every check has its own. */
function areOne(one: Policy, other: Policy): boolean {
  const { agrees, keyShape } = algorithmOf(one)
  if (one.counting !== other.counting || one.reach !== other.reach) return false
  return agrees ? agrees(one, other) : keyShape(one) === keyShape(other)
}

function describe(policy: Policy): string {
  const { algorithm, windowMs } = policy
  const described = algorithmOf(policy).describe?.(policy) ?? `${algorithm} over ${windowMs} ms`
  const reach = policy.reach === 'global' ? " with reach 'global'" : ''
  if (policy.counting === algorithm) return `${described}${reach}`
  return `${described} with ${policy.prefetchMs > 0 ? 'prefetch' : 'reserve'}${reach}`
}

/** Numbers the unnamed policies, all shown as `default`: a response needs distinct names. */
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
