import { type CheckLimiter, invalid, type Policy, SluiceError } from '@sluice/core'
import { evidenceOf, ipKey, keyOfIdentity, type LiveGuard } from '@sluice/http'
import { NamedParts } from '../bind/keys.ts'
import { overrideFor } from '../bind/overrides.ts'
import { placedPolicies } from '../file/named-policies.ts'
import type { KeyEntry, PolicyFile } from '../file/policy-file.ts'
import type { VersionSwitch } from './version.ts'

/** An identity: values by key name, or a digest. */
export type NamedIdentity =
  | { readonly digest: string }
  | { readonly key: Readonly<Record<string, string | number>> }

/** A current policy that counts an identity. */
export interface CountedKey {
  readonly policy: Policy
  /** The key under which the policy counts or blocks it. */
  readonly key: string
  readonly digest?: string
  /** The limit of the policy or of an override; `Infinity` for none. */
  readonly limit: number
  /** False if it depends on the request: then `limit` is only a placeholder. */
  readonly limitIsKnown: boolean
  /** Names of the keys that the policy counts; `firstOf` has several. */
  readonly names: readonly string[]
  /** True if only a route may have the key, which all its clients share. */
  readonly isOfRoute: boolean
  /** Names in the identity whose values are complete keys returned by functions in code. */
  readonly ownFunctions: readonly string[]
  /** The mode of an override, which takes precedence over the policy's. */
  readonly shadow?: boolean | undefined
  /** A limiter of these policies. */
  readonly limiter: CheckLimiter
}

/** A policy and the entry for the key that it counts. */
interface Keyed extends Pick<CountedKey, 'policy' | 'names'> {
  readonly entry: KeyEntry
  readonly hasFixedLimit: boolean
}

/** A key that nobody has, for a check of a digest. */
const nobody = '@digest'

export function keyNamesOf(guards: readonly LiveGuard[]): readonly string[] {
  const given = guards.flatMap(({ code }) => Object.keys(code.keys ?? {}))
  return [...new Set(['ip', ...given])]
}

/** @throws SluiceError if a name is unknown, or a value is not an identity */
export function countsOf(
  identity: NamedIdentity,
  { now, guards }: Pick<VersionSwitch, 'now' | 'guards'>,
): readonly CountedKey[] {
  const [first] = guards
  if (!first) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      'no limiter of this process uses these policies yet; pass them to rateLimit({ policies, store })',
    )
  }
  const keyed = keyedPolicies(now.file, now.registrations.policies)
  if ('digest' in identity) {
    const parts = new NamedParts(first.code)
    return keyed.map(({ policy, names, entry }) => ({
      ...{ policy, names, key: nobody, digest: identity.digest, limiter: first.limiter },
      ...{ limit: policy.limit, limitIsKnown: !policy.limitPerRequest, ownFunctions: [] },
      isOfRoute: formsOf(entry).some((form) => evidenceOf(parts.key(form)) === 'route'),
    }))
  }
  const { key } = identity
  const given = Object.keys(key)
  const known = keyNamesOf(guards)
  const unknown = given.find((name) => name !== 'route' && !known.includes(name))
  if (unknown !== undefined) {
    throw invalid({ option: 'key' }, unknown, `the name of a key: ${known.join(', ')}`)
  }
  return keyed.flatMap(({ policy, names, entry, hasFixedLimit }) => {
    // Applications on one store may use other key names: one of them knows the identity's.
    for (const { code, limiter } of guards) {
      const parts = new NamedParts(code)
      const found = keyFor(entry, key, parts)
      if (found === undefined) continue
      for (const name of given) checkAddress(name, key[name], parts)
      const own = (now.file.overrides ?? []).filter((each) => each.policy === policy.name)
      const override = overrideFor(own, key, parts)
      // An override with additional names may take precedence, unless such requests lack the name.
      const isDecided = own.every((each) => {
        const others = Object.keys(each.key)
        return (
          others.some((name) => found.lacking.includes(name)) || others.every((name) => name in key)
        )
      })
      const counted: CountedKey = {
        ...{ policy, names, key: found.key, limiter, shadow: override?.shadow },
        limit: override?.limit ?? policy.limit,
        limitIsKnown: isDecided && (override?.limit !== undefined || hasFixedLimit),
        ownFunctions: given.filter((name) => !('keyOf' in parts.key(name))),
        isOfRoute: given.every((name) => evidenceOf(parts.key(name)) === 'route'),
      }
      return [counted]
    }
    return []
  })
}

/** @throws SluiceError for an invalid address: all of them share one key */
function checkAddress(name: string, value: unknown, parts: NamedParts<never>): void {
  if (keyOfIdentity(parts.key(name), String(value)) !== ipKey('')) return
  const legal = `one address, such as '203.0.113.9' (to block a network, set block: { ips: ['10.0.0.0/8'] } in the policy file)`
  throw invalid({ option: `key.${name}` }, value, legal)
}

type Form = string | { readonly all: readonly string[] }

/** The keys that an entry may return, one per request. */
function formsOf(entry: KeyEntry): readonly Form[] {
  return typeof entry === 'object' && 'firstOf' in entry ? entry.firstOf : [entry]
}

const namesIn = (form: Form): readonly string[] => (typeof form === 'string' ? [form] : form.all)

/**
 * Returns an entry's key for an identity, and the names of `firstOf` that requests with this key
 * lack; `undefined` if the entry counts something else.
 */
function keyFor(
  entry: KeyEntry,
  key: Readonly<Record<string, string | number>>,
  parts: NamedParts<never>,
): { readonly key: string; readonly lacking: readonly Form[] } | undefined {
  const given = Object.keys(key)
  const forms = formsOf(entry)
  const form = forms.find((each) => {
    const names = namesIn(each)
    return names.length === given.length && names.every((name) => given.includes(name))
  })
  if (form === undefined) return undefined
  const values = namesIn(form).map((name) => String(key[name]))
  return {
    key: keyOfIdentity(parts.key(form), typeof form === 'string' ? values[0] : values),
    lacking: forms.slice(0, forms.indexOf(form)),
  }
}

/** Returns all policies of a version that can be checked with only a key. */
function keyedPolicies(file: PolicyFile, policies: readonly Policy[]): readonly Keyed[] {
  const { routes = {} } = file
  const entries = new Map(
    placedPolicies(file).map(({ policy, path: [place, name] }) => {
      const route = place === 'routes' && routes[String(name)]
      const ofRoute = typeof route === 'object' ? route.key : undefined
      const entry = policy.key ?? ofRoute ?? file.key ?? 'ip'
      return [policy.name, { entry, hasFixedLimit: typeof policy.limit !== 'object' }]
    }),
  )
  for (const place of [...Object.values(routes), file]) {
    if (typeof place !== 'object' || !place.penalty) continue
    const { name, key = place.key ?? file.key ?? 'ip' } = place.penalty
    if (name !== undefined || place === file) {
      entries.set(name ?? 'penalty', { entry: key, hasFixedLimit: true })
    }
  }
  return policies.flatMap((policy) => {
    const found = entries.get(policy.name)
    if (!found) return []
    const names = formsOf(found.entry).map((form) => namesIn(form).join(' and '))
    return [{ policy, names, ...found }]
  })
}
