import { andThen, invalid, type MaybePromise, warnOnce } from '@sluice/core'
import { defineIdentity, type IdentityResolver } from './resolver.ts'

/**
 * The id of a client in a database: a string, or an integer, which counts as its digits.
 * `undefined`, null, '' and NaN: no identity.
 */
export type Id = string | number | bigint | null | undefined

/** A resolver for ids, with keys such as `@kind/id`: ids of two kinds never collide. */
function idKey<Native>(
  kind: 'user' | 'tenant',
  find: (native: Native) => MaybePromise<Id>,
): IdentityResolver<Native, [id: Id]> {
  if (typeof find !== 'function') {
    const legal = `a function of the request, as in ${kind}((req) => …)`
    throw invalid({ option: `${kind}(find)` }, find, legal)
  }
  const keyOf = (id: Id): string | undefined => {
    const text = textOf(id, kind)
    return text === undefined ? undefined : `@${kind}/${text}`
  }
  return defineIdentity(
    (native) => andThen(find(native), keyOf),
    (id) => {
      const legal = 'a non-empty string, a bigint, or a whole number up to 2^53 − 1'
      const key = isId(id) ? keyOf(id) : undefined
      if (key !== undefined) return key
      throw invalid({ option: `${kind}(…).keyOf(id)` }, id, legal)
    },
  )
}

function isId(id: unknown): boolean {
  return typeof id === 'string' || typeof id === 'bigint' || Number.isSafeInteger(id)
}

function textOf(id: Id, kind: string): string | undefined {
  if (isId(id)) return id === '' ? undefined : String(id)
  if (id === undefined || id === null || Number.isNaN(id)) return undefined
  warnOnce(
    `the function of ${kind}(…) returned a ${typeof id}, which is not an id and counts as ` +
      `missing: return a string, a bigint, or a whole number up to 2^53 − 1 (larger ids would collide)`,
    `id of ${kind}`,
  )
  return undefined
}

/**
 * The authenticated user: `user((req) => req.user?.id)`. The key is `@user/` and the id, such as
 * `@user/42`.
 */
export function user<Native>(
  find: (native: Native) => MaybePromise<Id>,
): IdentityResolver<Native, [id: Id]> {
  return idKey('user', find)
}

/**
 * The tenant, or organisation, that a request belongs to: `tenant((req) => req.tenant?.id)`. The
 * key is `@tenant/` and the id, such as `@tenant/acme`.
 */
export function tenant<Native>(
  find: (native: Native) => MaybePromise<Id>,
): IdentityResolver<Native, [id: Id]> {
  return idKey('tenant', find)
}
