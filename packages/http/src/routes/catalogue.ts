import { definePolicy, givenFields, invalid, isOptions, quote, SluiceError } from '@sluice/core'
import { checkPolicy, corePolicy, shorthandFields } from '../options/bound-policy.ts'
import type {
  HttpPolicyOptions,
  PolicyGuardOptions,
  Profile,
  Profiles,
} from '../options/options.ts'

/** Finds a named policy. @throws SluiceError if there is none with this name */
export type PolicyCatalogue<Native> = (name: string, where: string) => HttpPolicyOptions<Native>

/**
 * The named policies of a guard's options, to which route overrides refer.
 * @throws SluiceError if a profile is wrong or has the name of a policy
 */
export function policyCatalogue<Native>(
  options: NamedBy<Native>,
  profiles: Profiles<Native> = {},
): PolicyCatalogue<Native> {
  if (!isOptions(profiles)) {
    throw invalid({ option: 'profiles' }, profiles, 'a plain object of policies by name')
  }
  const named = namedPolicies(options).map((policy) => [policy.name, policy] as const)
  const policies = new Map<string, HttpPolicyOptions<Native>>(named)
  for (const [name, profile] of Object.entries(profiles)) {
    const where = `profiles.${name}`
    if (policies.has(name)) {
      throw new SluiceError(
        'SLUICE_POLICY_DUPLICATE',
        `${where} has the same name as a policy in the options; rename one of them`,
      )
    }
    policies.set(name, namedProfile(profile, name, where))
  }

  return (name, where) => {
    const policy = policies.get(name)
    if (policy) return policy
    const known = [...policies.keys()].join(', ')
    throw new SluiceError(
      'SLUICE_POLICY_UNKNOWN',
      `${where} names ${quote(name)}, but there is no such profile or named policy; ` +
        `${known ? `there are ${known}` : `add it, as in profiles: { ${name}: { limit: 10, window: '1m' } }`}`,
    )
  }
}

function namedProfile<Native>(
  profile: Profile<Native>,
  name: string,
  where: string,
): HttpPolicyOptions<Native> {
  if (!isOptions(profile) || profile.name !== undefined) {
    throw invalid({ option: where }, profile, 'the options of a policy, without a name')
  }
  const policy = { ...profile, name }
  checkPolicy(policy, where)
  definePolicy(corePolicy(policy), where)
  return policy
}

type Named<Native> = HttpPolicyOptions<Native> & { name: string }

type NamedBy<Native> = Pick<PolicyGuardOptions<Native, unknown>, 'name' | 'policies'>

/** Returns the named policies of a guard's options: each is one quota, wherever it is used. */
export function namedPolicies<Native>(options: NamedBy<Native>): readonly Named<Native>[] {
  const { policies = [Object.fromEntries(givenFields(options, shorthandFields))] } = options
  // All other mistakes are found when the guard is created.
  const isNamed = (policy: unknown): policy is Named<Native> =>
    typeof Object(policy).name === 'string'
  return Array.isArray(policies) ? policies.filter(isNamed) : []
}
