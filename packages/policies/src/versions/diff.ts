import { mapped, placedPolicies } from '../file/named-policies.ts'
import type { PolicyFile } from '../file/policy-file.ts'
import { countFields } from './version.ts'

/** One difference between two versions. */
export interface Difference {
  /** `policies.burst.limit`, `routes./health`, `overrides`, `statusCode`. */
  readonly path: string
  /** `undefined` if it did not exist. */
  readonly from: unknown
  /** `undefined` if it no longer exists. */
  readonly to: unknown
  /** True if the policy starts a new count and forgets the old one. */
  readonly newCount: boolean
}

type Fields = Readonly<Record<string, unknown>>

/** Returns the differences between two sets of policies, policy by policy. */
export function differences(from: PolicyFile, to: PolicyFile): readonly Difference[] {
  const [before, after] = [policiesOf(from), policiesOf(to)]
  const names = new Set([...before.keys(), ...after.keys()])
  const ofPolicies = [...names].flatMap((name) => {
    const [one, other] = [before.get(name), after.get(name)]
    const path = `policies.${name}`
    if (!one || !other) return [{ path, from: one, to: other, newCount: true }]
    const isOtherKey = from.key !== to.key && !one.key && !other.key
    return changes(one, other, {
      path: `${path}.`,
      countsAnew: (field) => isOtherKey || countFields.some((each) => each === field),
    })
  })
  const ofRoutes = changes(routesOf(from), routesOf(to), { path: 'routes.' })
  const isOfFile = { path: '', countsAnew: (field: string) => field === 'key' }
  return [...ofPolicies, ...ofRoutes, ...changes(settingsOf(from), settingsOf(to), isOfFile)]
}

/** Returns the fields that differ. Some fields start a new count of their policy. */
function changes(
  from: Fields,
  to: Fields,
  { path, countsAnew }: { path: string; countsAnew?: (field: string) => boolean },
): readonly Difference[] {
  return Object.keys({ ...from, ...to })
    .filter((field) => JSON.stringify(from[field]) !== JSON.stringify(to[field]))
    .map((field) => ({
      ...{ path: `${path}${field}`, from: from[field], to: to[field] },
      newCount: countsAnew?.(field) ?? false,
    }))
}

function settingsOf({ policies, profiles, routes, $schema, ...settings }: PolicyFile): Fields {
  return settings
}

/** Returns the routes, with policies replaced by their names. */
function routesOf({ routes = {} }: PolicyFile): Fields {
  return mapped(routes, (rule) => {
    if (typeof rule !== 'object' || !rule.policies) return rule
    const names = rule.policies.map((policy) => (typeof policy === 'string' ? policy : policy.name))
    return { ...rule, policies: names }
  })
}

function policiesOf(file: PolicyFile): ReadonlyMap<string, Fields> {
  return new Map(placedPolicies(file).map(({ policy }) => [policy.name, policy]))
}
