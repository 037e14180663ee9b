import { invalid, isPromise, type MaybePromise, maxKeyLength, warnOnce } from '@sluice/core'
import type { HttpRequest } from '../request/exchange.ts'

/** The result of a resolver. Anything but a non-empty string means that there is no key. */
export type ResolvedKey = string | null | undefined

/**
 * Identifies the client of a request. Any function of the framework's request is a resolver; the
 * built-in ones read the framework-independent view in the second argument.
 * @typeParam Native the framework's request
 */
export type KeyResolver<Native> = (
  native: Native,
  request: HttpRequest,
) => MaybePromise<ResolvedKey>

/**
 * A built-in resolver. It can also compute the key of an identity without a request.
 * @typeParam Values the parts of an identity
 */
export interface IdentityResolver<Native, Values extends unknown[] = [value: string]>
  extends KeyResolver<Native> {
  /**
   * Returns the key of an identity, for `limiter.reset(key)` and for lists: `user(…).keyOf('ada')`
   * is `'@user/ada'`.
   * @throws SluiceError if the value is not an identity
   */
  keyOf(...values: Values): string
}

/**
 * Source of a resolver's keys: the address of a client, the address together with another identity,
 * an unverified credential, or only the route, which all clients share.
 */
type Evidence = 'address' | 'pair' | 'route' | 'unverified'

/** The property of a ready-made resolver: a WeakMap would cost a tenth of finding a key. */
const evidenceKey: unique symbol = Symbol.for('@sluice/http/resolver/3')

/** Returns the source of several resolvers' keys: unverified if one of them is. */
export function evidenceOf(...resolvers: readonly object[]): Evidence | undefined {
  const known = resolvers.map((one): Evidence | undefined => Reflect.get(one, evidenceKey))
  return known.includes('unverified') ? 'unverified' : known.length === 1 ? known[0] : undefined
}

/** Marks a resolver whose keys begin with `@` and its kind, so that two kinds never collide. */
export function defineKey<Native>(resolver: KeyResolver<Native>): KeyResolver<Native> {
  return Object.assign(resolver, { [evidenceKey]: undefined })
}

/** Marks a resolver with the source of its keys, and adds `keyOf`. */
export function defineIdentity<Native, Values extends unknown[]>(
  resolver: KeyResolver<Native>,
  keyOf: (...values: Values) => string,
  evidence?: Evidence,
): IdentityResolver<Native, Values> {
  return Object.assign(resolver, { keyOf, [evidenceKey]: evidence })
}

/**
 * Returns the key of a request. The string that a user's function returns is the key itself, so
 * that `limiter.reset(key)` takes the same string. Only a leading `@` is doubled: a client that
 * chooses the string must not reach keys of another kind.
 * @throws or rejects with the resolver's error
 */
export function resolveKey<Native>(
  resolver: KeyResolver<Native>,
  native: Native,
  request: HttpRequest,
): MaybePromise<string | undefined> {
  const key = resolver(native, request)
  return isPromise(key) ? key.then((known) => accept(known, resolver)) : accept(key, resolver)
}

function accept(key: ResolvedKey, resolver: object): string | undefined {
  if (typeof key !== 'string' || key === '') {
    if (key !== undefined && key !== null && key !== '') warnAboutType(key)
    return undefined
  }
  if (key.length > maxKeyLength) {
    warnOnce(
      `a key of more than ${maxKeyLength} characters counts as missing; return a hash of it instead`,
      'key length',
    )
    return undefined
  }
  return key[0] === '@' && !(evidenceKey in resolver) ? `@${key}` : key
}

/**
 * Returns a resolver's key for an identity; a list holds the values of a nested `all(…)`. Without
 * `keyOf` (a user's function, `firstOf(…)`), the value is the key itself.
 * @throws SluiceError if the value is not an identity
 */
export function keyOfIdentity<Native>(resolver: KeyResolver<Native>, value: unknown): string {
  if ('keyOf' in resolver && typeof resolver.keyOf === 'function') {
    return resolver.keyOf(...(Array.isArray(value) ? value : [value]))
  }
  if (typeof value === 'string' && value !== '') return accept(value, resolver) ?? value
  throw invalid({ option: 'a value of keyOf(…)' }, value, 'a non-empty string')
}

/** Database keys may be numbers: without a warning, those users would share one quota. */
function warnAboutType(key: unknown): void {
  warnOnce(
    `a key function returned a ${typeof key} instead of a string: it counts as missing; write user((req) => …), which takes ids, or String(id)`,
    'key type',
  )
}

export function checkResolvers(resolvers: readonly unknown[], option: string): void {
  const wrong = resolvers.findIndex((resolver) => typeof resolver !== 'function')
  if (resolvers.length > 0 && wrong === -1) return
  throw invalid(
    { option },
    resolvers[wrong],
    'at least one resolver: ip(), apiKey(), or a function of the request',
  )
}
