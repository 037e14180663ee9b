import { invalid, type MaybePromise } from '@sluice/core'
import { type Id, idKey } from './identity.ts'
import type { IdentityResolver } from './resolver.ts'

/**
 * The tenant, or organisation, on whose account a request is made: `tenant((req) => req.tenant?.id)`. Its key is `@tenant/` and the id, such as
 * `@tenant/acme`.
 */
export function tenant<Native>(
  find: (native: Native) => MaybePromise<Id>,
): IdentityResolver<Native, [id: Id]> {
  if (typeof find === 'function') return idKey('tenant', find)
  throw invalid(
    { option: 'tenant(find)' },
    find,
    'a function of the request, as in tenant((req) => …)',
  )
}
