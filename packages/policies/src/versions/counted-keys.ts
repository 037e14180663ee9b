import { type CheckLimiter, invalid, type Policy, SluiceError } from '@sluice/core'
import { evidenceOf, keyOfIdentity, type LiveGuard } from '@sluice/http'
import { NamedParts } from '../bind/keys.ts'
import { overrideFor } from '../bind/overrides.ts'
import { placedPolicies } from '../file/named-policies.ts'
import type { KeyEntry, PolicyFile, RouteEntry } from '../file/policy-file.ts'
import type { VersionSwitch } from './version-switch.ts'

/** An identity: values by the names of keys, or a digest. */
export type NamedIdentity =
  | { readonly digest: string }
  | { readonly key: Readonly<Record<string, string | number>> }

/** A policy in force that counts an identity. */
export interface CountedKey {
  readonly policy: Policy
  /** The key under which the policy counts it, or blocks it. */
  readonly key: string
  readonly digest?: string
  /** The limit of the policy, or that of an override; `Infinity` for none. */
  readonly limit: number
  /** False if it depends on the request: then `limit` only stands in. */
  readonly limitIsKnown: boolean
  /** Names of the keys that the policy counts, of which a `firstOf` has several. */
  readonly names: readonly string[]
  /** True if a route alone may have the key, which all its clients share. */
  readonly isOfRoute: boolean
  /** Names in the identity whose values are whole texts that functions of the code yield. */
  readonly ownFunctions: readonly string[]
  /** The mode of an override, which counts before that of the policy. */
  readonly shadow?: boolean | undefined
  /** A limiter of these policies. */
  readonly limiter: CheckLimiter
}

/** A policy and the entry of the key that it counts. */
interface Keyed {
  readonly policy: Policy
  readonly entry: KeyEntry
  readonly hasFixedLimit: boolean
}

/** The key of a check of a digest: nobody has it. */
const nobody = '@digest'

export function keyNamesOf(guards: readonly LiveGuard[]): readonly string[] {
  const given = guards.flatMap(({ code }) => Object.keys(code.keys ?? {}))
  return [...new Set(['ip', ...given])]
}

/** @throws SluiceError when a name is unknown, or a value is no identity */
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
    const { digest } = identity
    const parts = new NamedParts(first.code)
    return keyed.map(({ policy, entry }) => ({
      ...{ policy, key: nobody, digest, limit: policy.limit },
      limitIsKnown: !policy.limitPerRequest,
      ...{ names: namesOf(entry), ownFunctions: [], limiter: first.limiter },
      isOfRoute: formsOf(entry).some((form) => isRoute(form, parts)),
    }))
  }
  const { key } = identity
  checkNames(key, guards)
  const { overrides = [] } = now.file
  return keyed.flatMap(({ policy, entry, hasFixedLimit }) => {
    // Applications on one store may name other keys: one of them knows those of the identity.
    for (const { code, limiter } of guards) {
      const parts = new NamedParts(code)
      const found = keyFor(entry, key, parts)
      if (found === undefined) continue
      const own = overrides.filter((override) => override.policy === policy.name)
      const override = overrideFor(own, key, parts)
      const limit = override?.limit ?? policy.limit
      // An override of other names too may come first.
      const isDecided = own.every((each) => Object.keys(each.key).every((name) => name in key))
      const limitIsKnown = isDecided && (override?.limit !== undefined || hasFixedLimit)
      const ownFunctions = Object.keys(key).filter((name) => !('keyOf' in parts.key(name)))
      return [
        {
          ...{ policy, key: found, limit, limitIsKnown, shadow: override?.shadow, limiter },
          ...{ names: namesOf(entry), ownFunctions },
          isOfRoute: Object.keys(key).every((name) => isRoute(name, parts)),
        },
      ]
    }
    return []
  })
}

function namesOf(entry: KeyEntry): readonly string[] {
  return formsOf(entry).map((form) => (typeof form === 'string' ? form : form.all.join(' and ')))
}

/** The keys that an entry may yield, one of them for each request. */
function formsOf(entry: KeyEntry): readonly (string | { readonly all: readonly string[] })[] {
  return typeof entry === 'object' && 'firstOf' in entry ? entry.firstOf : [entry]
}

function isRoute(entry: KeyEntry, parts: NamedParts<never>): boolean {
  return evidenceOf(parts.key(entry)) === 'route'
}

function checkNames(key: Readonly<Record<string, unknown>>, guards: readonly LiveGuard[]): void {
  const known = keyNamesOf(guards)
  for (const name of Object.keys(key)) {
    if (known.includes(name) || name === 'route') continue
    throw invalid({ option: 'key' }, name, `the name of a key: ${known.join(', ')}`)
  }
}

/** The key that an entry has for an identity; `undefined` if it counts something else. */
function keyFor(
  entry: KeyEntry,
  key: Readonly<Record<string, string | number>>,
  parts: NamedParts<never>,
): string | undefined {
  const names = Object.keys(key)
  const text = (name: string): string => String(key[name])
  const [only] = names
  if (typeof entry === 'string' || 'firstOf' in entry) {
    const wanted = typeof entry === 'string' ? [entry] : entry.firstOf
    if (names.length !== 1 || only === undefined || !wanted.includes(only)) return undefined
    return keyOfIdentity(parts.key(only), text(only))
  }
  const isSame = entry.all.length === names.length && entry.all.every((name) => name in key)
  return isSame ? keyOfIdentity(parts.key(entry), entry.all.map(text)) : undefined
}

/** All policies of a version that can be asked about a key by itself. */
function keyedPolicies(file: PolicyFile, policies: readonly Policy[]): readonly Keyed[] {
  const entries = new Map<string, Omit<Keyed, 'policy'>>(
    placedPolicies(file).map(({ policy, path }) => {
      const entry = policy.key ?? routeOf(file, path)?.key ?? file.key ?? 'ip'
      return [policy.name, { entry, hasFixedLimit: typeof policy.limit !== 'object' }]
    }),
  )
  for (const place of [...Object.values(file.routes ?? {}), file]) {
    const penalty = typeof place === 'object' ? place.penalty : undefined
    if (typeof place !== 'object' || !isPenalty(penalty)) continue
    const { name, key = place.key ?? file.key ?? 'ip' } = penalty
    if (name !== undefined || place === file) {
      entries.set(name ?? 'penalty', { entry: key, hasFixedLimit: true })
    }
  }
  return policies.flatMap((policy) => {
    const found = entries.get(policy.name)
    return found === undefined ? [] : [{ policy, ...found }]
  })
}

function isPenalty(value: unknown): value is { readonly name?: string; readonly key?: KeyEntry } {
  return typeof value === 'object' && value !== null
}

function routeOf(file: PolicyFile, [place, name]: readonly unknown[]): RouteEntry | undefined {
  const route = place === 'routes' ? file.routes?.[String(name)] : undefined
  return typeof route === 'object' ? route : undefined
}
