import type { MaybePromise } from '@sluice/core'
import { all, firstOf } from '../keys/combine.ts'
import { type ApiKeyOptions, apiKey, bearer, type CredentialOptions } from '../keys/headers.ts'
import { type Id, tenant, user } from '../keys/identity.ts'
import type { IdentityResolver, KeyResolver } from '../keys/resolver.ts'
import type { LimitSource } from '../limits/source.ts'
import { type TierTable, tiers } from '../limits/tiers.ts'

/** The generic keys and limits, with the type of a framework's request. */
export interface RequestKeys<Native> {
  /** Joins several identities to one, such as account and address; missing when any of them is. */
  all(...resolvers: KeyResolver<Native>[]): IdentityResolver<Native, unknown[]>
  /**
   * An API key. **Anybody can make up API keys**: `apiKey({ verify: (key) => issued.has(key) })`.
   */
  apiKey(options?: ApiKeyOptions<Native>): IdentityResolver<Native>
  /**
   * A bearer token. **Anybody can make up tokens**: give `verify`, or refuse unknown ones before.
   */
  bearer(options?: CredentialOptions<Native>): IdentityResolver<Native>
  /** The first identity that a request has: `firstOf(apiKey({ verify }), ip())`. */
  firstOf(...resolvers: KeyResolver<Native>[]): KeyResolver<Native>
  /** The tenant on whose account a request is made: `tenant((request) => request.tenant?.id)`. */
  tenant(find: (request: Native) => MaybePromise<Id>): IdentityResolver<Native, [id: Id]>
  /**
   * A limit for each tier: `tiers({ free: 100, default: 60 }, (request) => request.user?.plan)`.
   */
  tiers<R extends Native = Native>(
    table: TierTable<NoInfer<R>>,
    tierOf: (request: R) => MaybePromise<string | null | undefined>,
  ): LimitSource<R>
  /** The user that was authenticated before: `user((request) => request.user?.id)`. */
  user(find: (request: Native) => MaybePromise<Id>): IdentityResolver<Native, [id: Id]>
}

/** The same functions for every framework: an adapter says which request they are given. */
export function requestKeys<Native>(): RequestKeys<Native> {
  return { all, apiKey, bearer, firstOf, tenant, tiers, user }
}
