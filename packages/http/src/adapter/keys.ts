import type { MaybePromise } from '@sluice/core'
import { all, firstOf } from '../keys/combine.ts'
import { apiKey, bearer } from '../keys/headers.ts'
import { tenant, user } from '../keys/identity.ts'
import type { LimitSource } from '../limits/source.ts'
import { type TierTable, tiers } from '../limits/tiers.ts'

/** The generic keys and limits, typed for a framework's request. */
export interface RequestKeys<Native> {
  readonly all: typeof all<Native>
  readonly apiKey: typeof apiKey<Native>
  readonly bearer: typeof bearer<Native>
  readonly firstOf: typeof firstOf<Native>
  readonly tenant: typeof tenant<Native>
  /**
   * A limit for each tier: `tiers({ free: 100, default: 60 }, (request) => request.user?.plan)`.
   */
  tiers<R extends Native = Native>(
    table: TierTable<NoInfer<R>>,
    tierOf: (request: R) => MaybePromise<string | null | undefined>,
  ): LimitSource<R>
  readonly user: typeof user<Native>
}

/** The same functions for every framework. The adapter sets the request type. */
export function requestKeys<Native>(): RequestKeys<Native> {
  return { all, apiKey, bearer, firstOf, tenant, tiers, user }
}
