import {
  invalid,
  isPromise,
  type MaybePromise,
  maxKeyLength,
  processWide,
  warnOnce,
} from '@sluice/core'
import type { HttpRequest } from '../request/exchange.ts'

/** The result of a resolver; all but a non-empty string mean that the request has no such key. */
export type ResolvedKey = string | null | undefined

/**
 * Says who is asking. Any function of the framework's request is one; the ready-made ones read the
 * neutral view that comes second.
 * @typeParam Native the framework's request
 */
export type KeyResolver<Native> = (
  native: Native,
  request: HttpRequest,
) => MaybePromise<ResolvedKey>

/**
 * A ready-made resolver. It also tells the key of an identity that no request stands for.
 * @typeParam Values what an identity is made of
 */
export interface IdentityResolver<Native, Values extends unknown[] = [value: string]>
  extends KeyResolver<Native> {
  /**
   * Tells the key of an identity, as `limiter.reset(key)` and the lists take it:
   * `user(…).keyOf('ada')` is `'@user/ada'`.
   * @throws SluiceError when the value is no identity
   */
  keyOf(...values: Values): string
}

/**
 * The evidence behind the keys of a resolver: the address of a client, the address together with
 * another identity, an unverified credential, or the route alone, which all clients share.
 */
type Evidence = 'address' | 'pair' | 'route' | 'unverified'

const readyMade = processWide(
  '@sluice/http/resolvers/2',
  () => new WeakMap<object, Evidence | undefined>(),
)

/** Returns the evidence behind the keys of resolvers; one that is unverified is enough. */
export function evidenceOf(...resolvers: readonly object[]): Evidence | undefined {
  const known = resolvers.map((resolver) => readyMade.get(resolver))
  return known.includes('unverified') ? 'unverified' : known.length === 1 ? known[0] : undefined
}

/** Marks a resolver whose keys begin with `@` and its kind, so that two kinds never meet. */
export function defineKey<Native>(resolver: KeyResolver<Native>): KeyResolver<Native> {
  readyMade.set(resolver, undefined)
  return resolver
}

/** Marks a resolver by the source of its keys, and gives it `keyOf`. */
export function defineIdentity<Native, Values extends unknown[]>(
  resolver: KeyResolver<Native>,
  keyOf: (...values: Values) => string,
  evidence?: Evidence,
): IdentityResolver<Native, Values> {
  readyMade.set(resolver, evidence)
  return Object.assign(resolver, { keyOf })
}

/**
 * The key of a request. The text of a user's function is the key itself, so that
 * `limiter.reset(key)` takes the same text. Only a leading `@` is doubled: a client that chooses
 * the text must not reach keys of another kind.
 * @throws or rejects with the error of the resolver
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
      `a key of more than ${maxKeyLength} characters counts as missing; yield a digest of it instead`,
      'key length',
    )
    return undefined
  }
  return key[0] === '@' && !readyMade.has(resolver) ? `@${key}` : key
}

/**
 * The key that a resolver has for an identity: a list stands for the values of a nested `all(…)`.
 * Without `keyOf` (a user's function, `firstOf(…)`) it is the key of the resolver itself.
 * @throws SluiceError when the value is no identity
 */
export function keyOfIdentity<Native>(resolver: KeyResolver<Native>, value: unknown): string {
  if ('keyOf' in resolver && typeof resolver.keyOf === 'function') {
    return resolver.keyOf(...(Array.isArray(value) ? value : [value]))
  }
  if (typeof value === 'string' && value !== '') return accept(value, resolver) ?? value
  throw invalid({ option: 'a value of keyOf(…)' }, value, 'text that is not empty')
}

/** Keys of databases may be numbers: unnoticed, these users would share one quota. */
function warnAboutType(key: unknown): void {
  warnOnce(
    `a key function yielded ${typeof key === 'number' ? 'a number' : `a ${typeof key}`}, and not text: it counts as missing; write user((req) => …), which takes ids, or String(id)`,
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
