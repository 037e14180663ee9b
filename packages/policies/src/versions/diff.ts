import { mapped, placedPolicies } from '../file/named-policies.ts'
import type { PolicyFile } from '../file/policy-file.ts'
import { countFields } from './version.ts'

/** One difference between two versions. */
export interface Difference {
  /** `policies.burst.limit`, `routes./health`, `overrides`, `statusCode`. */
  readonly path: string
  /** `undefined`: it was not there. */
  readonly from: unknown
  /** `undefined`: it is not there any more. */
  readonly to: unknown
  /** Tells whether the policy begins a new count, and forgets the old one. */
  readonly newCount: boolean
}

/** Finds the differences between two sets of policies, policy by policy. */
export function differences(from: PolicyFile, to: PolicyFile): readonly Difference[] {
  const before = policiesOf(from)
  const after = policiesOf(to)
  const names = new Set([...before.keys(), ...after.keys()])
  const ofPolicies = [...names].flatMap((name) => {
    const one = before.get(name)
    const other = after.get(name)
    if (!one || !other) return [difference(`policies.${name}`, one, other, true)]
    const isOtherKey = from.key !== to.key && !one.key && !other.key
    return fieldsOf(one, other).map((field) =>
      difference(
        `policies.${name}.${field}`,
        one[field],
        other[field],
        countsAnew(field) || isOtherKey,
      ),
    )
  })
  const ofFile = fieldsOf(from, to)
    .filter((field) => !['policies', 'profiles', 'routes', '$schema'].includes(field))
    .map((field) => difference(field, from[field], to[field], field === 'key'))
  return [...ofPolicies, ...ofRoutes(from.routes ?? {}, to.routes ?? {}), ...ofFile]
}

/** Compares routes, whose policies stand as names. */
function ofRoutes(
  from: NonNullable<PolicyFile['routes']>,
  to: NonNullable<PolicyFile['routes']>,
): readonly Difference[] {
  const [before, after] = [byName(from), byName(to)]
  return fieldsOf(before, after).map((route) =>
    difference(`routes.${route}`, before[route], after[route], false),
  )
}

function byName(routes: NonNullable<PolicyFile['routes']>): Readonly<Record<string, unknown>> {
  return mapped(routes, (rule) => {
    if (typeof rule !== 'object' || !rule.policies) return rule
    const names = rule.policies.map((policy) => (typeof policy === 'string' ? policy : policy.name))
    return { ...rule, policies: names }
  })
}

function policiesOf(file: PolicyFile): ReadonlyMap<string, Readonly<Record<string, unknown>>> {
  return new Map(placedPolicies(file).map(({ policy }) => [policy.name, policy]))
}

function fieldsOf(
  from: Readonly<Record<string, unknown>>,
  to: Readonly<Record<string, unknown>>,
): readonly string[] {
  const fields = new Set([...Object.keys(from), ...Object.keys(to)])
  return [...fields].filter((field) => JSON.stringify(from[field]) !== JSON.stringify(to[field]))
}

function countsAnew(field: string): boolean {
  return countFields.some((name) => name === field)
}

function difference(path: string, from: unknown, to: unknown, newCount: boolean): Difference {
  return { path, from, to, newCount }
}
