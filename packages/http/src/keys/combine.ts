import { andThen, isPromise, type MaybePromise, SluiceError } from '@sluice/core'
import type { HttpRequest } from '../request/exchange.ts'
import {
  checkResolvers,
  defineIdentity,
  evidenceOf,
  type IdentityResolver,
  type KeyResolver,
  keyOfIdentity,
  resolveKey,
} from './resolver.ts'

/**
 * Combines several identities, such as account and address; missing if any of them is.
 * `all(account, ip()).keyOf('ada', '203.0.113.9')` is the key for `limiter.reset`.
 */
export function all<Native>(
  ...resolvers: KeyResolver<Native>[]
): IdentityResolver<Native, unknown[]> {
  checkResolvers(resolvers, 'all(...)')
  return defineIdentity<Native, unknown[]>(
    (native, request) => {
      const parts = resolvers.map((resolver) => resolveKey(resolver, native, request))
      return parts.some(isPromise) ? Promise.all(parts).then(joined) : joined(parts)
    },
    (...values) => {
      if (values.length !== resolvers.length)
        throw otherCount('all', values.length, String(resolvers.length))
      const parts = resolvers.map((resolver, index) => keyOfIdentity(resolver, values[index]))
      return joinKey(tag, parts)
    },
    evidenceOf(...resolvers) ?? evidenceOfParts(resolvers),
  )
}

/** A client cannot make up routes as it can names, so the rest of the key decides. */
function evidenceOfParts(resolvers: readonly object[]): 'address' | 'pair' | undefined {
  const parts = resolvers.map((part) => evidenceOf(part)).filter((part) => part !== 'route')
  if (!parts.includes('address')) return undefined
  return parts.every((part) => part === 'address') ? 'address' : 'pair'
}

const tag = '@all/'

function joined(parts: readonly MaybePromise<string | undefined>[]): string | undefined {
  const texts = parts.filter((part) => typeof part === 'string')
  return texts.length === parts.length ? joinKey(tag, texts) : undefined
}

function otherCount(name: string, given: number, needed: string): SluiceError {
  return new SluiceError(
    'SLUICE_OPTION_INVALID',
    `${name}(...).keyOf takes one value per resolver: ${needed}, but got ${given}`,
  )
}

/**
 * The first identity that a request has, such as its API key, otherwise its address. `keyOf` takes
 * one value per resolver; the first that is not `undefined` counts: `firstOf(account,
 * ip()).keyOf(undefined, '203.0.113.9')`.
 */
export function firstOf<Native>(
  ...resolvers: KeyResolver<Native>[]
): IdentityResolver<Native, unknown[]> {
  checkResolvers(resolvers, 'firstOf(...)')
  const from = (
    index: number,
    native: Native,
    request: HttpRequest,
  ): MaybePromise<string | undefined> => {
    const resolver = resolvers[index]
    if (!resolver) return undefined
    return andThen(resolveKey(resolver, native, request), (key) => {
      return key ?? from(index + 1, native, request)
    })
  }
  return defineIdentity<Native, unknown[]>(
    (native, request) => from(0, native, request),
    (...values) => {
      const place = values.findIndex((value) => value !== undefined)
      const resolver = resolvers[place]
      if (resolver) return keyOfIdentity(resolver, values[place])
      const needed = `at most ${resolvers.length}, at least one of them defined`
      throw otherCount('firstOf', values.length, needed)
    },
    evidenceOf(...resolvers),
  )
}

/** Joins strings unambiguously: each is preceded by its length. */
export function joinKey(tag: string, parts: readonly string[]): string {
  return tag + parts.map((part) => `${part.length}:${part}`).join('')
}
