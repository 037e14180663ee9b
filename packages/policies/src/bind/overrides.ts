import { andThen, isPromise, type MaybePromise, SluiceError, unlimited } from '@sluice/core'
import {
  type HttpRequest,
  type KeyResolver,
  keyOfIdentity,
  type LimitSource,
  type LimitValue,
  resolveKey,
} from '@sluice/http'
import type { FixedLimit, OverrideEntry } from '../file/policy-file.ts'
import type { NamedParts } from './keys.ts'

/** One key of an override. */
interface Part<Native> {
  readonly resolver: KeyResolver<Native>
  /** False for a pattern of keys. */
  readonly isExact: boolean
  /** Number of characters before the first `*`. */
  readonly prefixLength: number
  readonly matches: (key: string) => boolean
}

export interface Override<Native> extends Pick<Part<Native>, 'isExact' | 'prefixLength'> {
  readonly policy: string
  readonly parts: readonly Part<Native>[]
  readonly limit: LimitValue | undefined
  readonly shadow: boolean | undefined
}

export function limitValue(limit: FixedLimit): LimitValue {
  return limit === 'unlimited' ? unlimited : limit
}

/**
 * A different limit for single identities. If several overrides apply, an exact one wins, then the
 * longest literal prefix, then the first in the list.
 */
export function overridden<Native>(
  base: LimitSource<Native>,
  overrides: readonly Override<Native>[],
): LimitSource<Native> {
  const limits = overrides.map(({ limit }) => limit).filter((limit) => typeof limit === 'number')
  return {
    kind: 'overrides',
    declared: base.declared,
    largest: Math.max(base.largest, ...limits),
    find(native, report, request) {
      return andThen(firstMatch(overrides, native, request), (match) => {
        const shadow = match?.shadow
        const mode = shadow === undefined ? {} : { shadow }
        if (match?.limit !== undefined) return { value: match.limit, reduced: false, ...mode }
        const found = base.find(native, report, request)
        if (shadow === undefined) return found
        return andThen(found, (known) => {
          if (known !== 'default') return { ...known, ...mode }
          return { value: base.declared ?? 0, reduced: false, ...mode }
        })
      })
    },
  }
}

/**
 * Parses overrides, and sorts them by precedence.
 * @throws SluiceError without the text of a key, which may be an identity
 */
export function readOverrides<Native>(
  entries: readonly OverrideEntry[],
  parts: NamedParts<Native>,
): readonly Override<Native>[] {
  const overrides = entries.map((entry, index) => {
    try {
      return readOverride(entry, parts)
    } catch {
      throw new SluiceError(
        'SLUICE_OPTION_INVALID',
        `overrides[${index}].key must have names that the code defines, as in keys: { tenant: tenant((req) => …) }, each with an identity or a pattern`,
      )
    }
  })
  return overrides.sort(
    (one, other) =>
      Number(other.isExact) - Number(one.isExact) || other.prefixLength - one.prefixLength,
  )
}

/** Finds the override for an identity of which only these values are known. */
export function overrideFor<Native>(
  entries: readonly OverrideEntry[],
  key: OverrideEntry['key'],
  named: NamedParts<Native>,
): { readonly limit: number | undefined; readonly shadow: boolean | undefined } | undefined {
  const keys = new Map(
    Object.entries(key).map(([name, value]) => {
      const resolver = named.key(name)
      return [resolver, keyOfIdentity(resolver, String(value))]
    }),
  )
  const found = readOverrides(entries, named).find(({ parts }) => areMatched(parts, keys))
  if (!found) return undefined
  const { limit, shadow } = found
  return { limit: limit === unlimited ? Number.POSITIVE_INFINITY : limit, shadow }
}

function areMatched<Native>(
  parts: readonly Part<Native>[],
  keys: ReadonlyMap<KeyResolver<Native>, string | undefined>,
): boolean {
  return parts.every(({ resolver, matches }) => {
    const key = keys.get(resolver)
    return key !== undefined && matches(key)
  })
}

function readOverride<Native>(
  { policy, key, limit, mode }: OverrideEntry,
  named: NamedParts<Native>,
): Override<Native> {
  const parts = Object.entries(key).map(([name, value]) => readPart(named.key(name), String(value)))
  return {
    policy,
    parts,
    isExact: parts.every(({ isExact }) => isExact),
    prefixLength: parts.reduce((sum, { prefixLength }) => sum + prefixLength, 0),
    limit: limit === undefined ? undefined : limitValue(limit),
    shadow: mode === undefined ? undefined : mode === 'shadow',
  }
}

function readPart<Native>(resolver: KeyResolver<Native>, value: string): Part<Native> {
  const star = value.indexOf('*')
  if (star === -1) {
    const exact = keyOfIdentity(resolver, value)
    return { resolver, isExact: true, prefixLength: value.length, matches: (key) => key === exact }
  }
  const texts = `${prefixOf(resolver)}${value}`.split('*')
  const matches = (key: string) => matchesTexts(key, texts)
  return { resolver, isExact: false, prefixLength: star, matches }
}

/** Matches the parts one after another, each at the first possible place: no pattern is slow. */
function matchesTexts(key: string, texts: readonly string[]): boolean {
  const first = texts[0] ?? ''
  const last = texts.at(-1) ?? ''
  if (!key.startsWith(first) || !key.endsWith(last)) return false
  const end = key.length - last.length
  let at = first.length
  for (const text of texts.slice(1, -1)) {
    const found = key.indexOf(text, at)
    if (found === -1) return false
    at = found + text.length
  }
  return at <= end
}

/** Returns the prefix of a resolver's keys: `@tenant/`. */
function prefixOf<Native>(resolver: KeyResolver<Native>): string {
  if (!('keyOf' in resolver) || typeof resolver.keyOf !== 'function') return ''
  const sample = '203.0.113.9'
  const key: string = resolver.keyOf(sample)
  return key.endsWith(sample) ? key.slice(0, -sample.length) : ''
}

/** Calls each resolver at most once, and only if an override needs it. */
function firstMatch<Native>(
  overrides: readonly Override<Native>[],
  native: Native,
  request: HttpRequest,
): MaybePromise<Override<Native> | undefined> {
  const known = new Map<KeyResolver<Native>, string | undefined>()

  function search(from: number): MaybePromise<Override<Native> | undefined> {
    for (let index = from; index < overrides.length; index += 1) {
      const override = overrides[index]
      if (!override) continue
      for (const { resolver } of override.parts) {
        if (known.has(resolver)) continue
        const key = resolveKey(resolver, native, request)
        if (isPromise(key)) {
          return key.then((found) => {
            known.set(resolver, found)
            return search(index)
          })
        }
        known.set(resolver, key)
      }
      if (areMatched(override.parts, known)) return override
    }
    return undefined
  }

  return search(0)
}
