import type { MaybePromise } from '@sluice/core'
import { all, firstOf } from '../keys/combine.ts'
import { type ApiKeyOptions, apiKey, bearer, type CredentialOptions } from '../keys/headers.ts'
import { type Id, tenant, user } from '../keys/identity.ts'
import type { IdentityResolver, KeyResolver } from '../keys/resolver.ts'
import type { LimitSource } from '../limits/source.ts'
import { type TierTable, tiers } from '../limits/tiers.ts'

/**
 * The generic keys and limits, bound to the request of a framework, so that a function written
 * inside knows its type.
 */
export interface RequestKeys<Native> {
  all(...resolvers: KeyResolver<Native>[]): IdentityResolver<Native, unknown[]>
  apiKey(options?: ApiKeyOptions<Native>): IdentityResolver<Native>
  bearer(options?: CredentialOptions<Native>): IdentityResolver<Native>
  firstOf(...resolvers: KeyResolver<Native>[]): KeyResolver<Native>
  tenant(find: (request: Native) => MaybePromise<Id>): IdentityResolver<Native, [id: Id]>
  tiers<R extends Native = Native>(
    table: TierTable<NoInfer<R>>,
    tierOf: (request: R) => MaybePromise<string | null | undefined>,
  ): LimitSource<R>
  user(find: (request: Native) => MaybePromise<Id>): IdentityResolver<Native, [id: Id]>
}

/** The same functions for every framework: an adapter says which request they are given. */
export function requestKeys<Native>(): RequestKeys<Native> {
  return { all, apiKey, bearer, firstOf, tenant, tiers, user }
}
