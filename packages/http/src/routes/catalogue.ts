import { definePolicy, givenFields, invalid, isOptions, quote, SluiceError } from '@sluice/core'
import { checkPolicy, corePolicy, shorthandFields } from '../options/bound-policy.ts'
import type {
  HttpPolicyOptions,
  PolicyGuardOptions,
  Profile,
  Profiles,
} from '../options/options.ts'

/** The named policies of a guard's options, which the overrides of routes refer to. */
export class PolicyCatalogue<Native> {
  readonly #policies = new Map<string, HttpPolicyOptions<Native>>()

  /** @throws SluiceError when a profile is wrong, or has the name of a policy */
  constructor(options: NamedBy<Native>, profiles: Profiles<Native> | undefined) {
    for (const policy of namedPolicies(options)) this.#policies.set(policy.name, policy)
    if (profiles === undefined) return
    if (!isOptions(profiles)) {
      throw invalid({ option: 'profiles' }, profiles, 'a plain object of policies by name')
    }
    for (const [name, profile] of Object.entries(profiles)) this.#add(name, profile)
  }

  /** @throws SluiceError when there is none of this name */
  find(name: string, where: string): HttpPolicyOptions<Native> {
    const policy = this.#policies.get(name)
    if (policy) return policy
    const known = [...this.#policies.keys()].join(', ')
    throw new SluiceError(
      'SLUICE_POLICY_UNKNOWN',
      `${where} names ${quote(name)}, but there is no such profile or named policy; ` +
        `${known ? `there are ${known}` : `add it, as in profiles: { ${name}: { limit: 10, window: '1m' } }`}`,
    )
  }

  #add(name: string, profile: Profile<Native>): void {
    const where = `profiles.${name}`
    if (this.#policies.has(name)) {
      throw new SluiceError(
        'SLUICE_POLICY_DUPLICATE',
        `${where} has the name of a policy that stands in the options; give one of them another name`,
      )
    }
    if (!isOptions(profile) || profile.name !== undefined) {
      throw invalid({ option: where }, profile, 'the options of a policy, without a name')
    }
    const policy = { ...profile, name }
    checkPolicy(policy, where)
    definePolicy(corePolicy(policy), where)
    this.#policies.set(name, policy)
  }
}

type Named<Native> = HttpPolicyOptions<Native> & { name: string }

type NamedBy<Native> = Pick<PolicyGuardOptions<Native, unknown>, 'name' | 'policies'>

/** The policies of a guard's options that have a name: each is one quota, wherever it stands. */
export function namedPolicies<Native>(options: NamedBy<Native>): readonly Named<Native>[] {
  const { policies = [Object.fromEntries(givenFields(options, shorthandFields))] } = options
  // All other mistakes are found when the guard is made.
  const isNamed = (policy: unknown): policy is Named<Native> =>
    typeof Object(policy).name === 'string'
  return Array.isArray(policies) ? policies.filter(isNamed) : []
}
