import type { Path } from './explain.ts'
import type { PolicyEntry, PolicyFile } from './policy-file.ts'

/** A policy of a file, and its place. */
export interface PlacedPolicy {
  readonly policy: PolicyEntry
  readonly path: Path
}

/** Returns all policies of a file: for all requests, for routes, and profiles. */
export function placedPolicies({
  policies = [],
  profiles = {},
  routes = {},
}: PolicyFile): readonly PlacedPolicy[] {
  return [
    ...policies.map((policy, index) => ({ policy, path: ['policies', index] })),
    ...Object.entries(profiles).map(([name, profile]) => ({
      policy: { ...profile, name },
      path: ['profiles', name],
    })),
    ...Object.entries(routes).flatMap(([route, rule]) => {
      const own = typeof rule === 'object' ? (rule.policies ?? []) : []
      return own.flatMap((policy, index) =>
        typeof policy === 'string' ? [] : [{ policy, path: ['routes', route, 'policies', index] }],
      )
    }),
  ]
}

/** Returns the file with its policies replaced. */
export function withPolicies(
  file: PolicyFile,
  change: (policy: PolicyEntry) => PolicyEntry,
): PolicyFile {
  const { policies, profiles, routes } = file
  return {
    ...file,
    ...(policies && { policies: policies.map(change) }),
    ...(profiles && {
      profiles: mapped(profiles, (profile, name) => {
        const { name: _name, ...rest } = change({ ...profile, name })
        return rest
      }),
    }),
    ...(routes && {
      routes: mapped(routes, (rule) => {
        if (typeof rule !== 'object' || !rule.policies) return rule
        const own = rule.policies.map((policy) =>
          typeof policy === 'string' ? policy : change(policy),
        )
        return { ...rule, policies: own }
      }),
    }),
  }
}

export function mapped<From, To>(
  fields: Readonly<Record<string, From>>,
  map: (value: From, name: string) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, map(value, name)]))
}
