import { invalid, type MaybePromise } from '@sluice/core'
import { type Id, idKey } from './identity.ts'
import type { IdentityResolver } from './resolver.ts'

/**
 * The user whom something before has authenticated: `user((req) => req.user?.id)`. Its key is `@user/` and the id, such as
 * `@user/42`.
 */
export function user<Native>(
  find: (native: Native) => MaybePromise<Id>,
): IdentityResolver<Native, [id: Id]> {
  if (typeof find === 'function') return idKey('user', find)
  throw invalid({ option: 'user(find)' }, find, 'a function of the request, as in user((req) => …)')
}
