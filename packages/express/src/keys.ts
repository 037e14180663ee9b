import {
  all as allKeys,
  firstOf as firstOfKeys,
  type Id,
  type KeyResolver,
  type LimitSource,
  type MaybePromise,
  type TierTable,
  tenant as tenantKey,
  tiers as tiersOf,
  user as userKey,
} from '@sluice/http'
import type { Request } from 'express'

/** Finds an id in a request of Express. */
type FindId = (request: Request) => MaybePromise<Id>
type CombineKeys = (...resolvers: KeyResolver<Request>[]) => KeyResolver<Request>

// What is generic, bound to the request of this framework: so a function written inside them knows its type.

/** The user whom something before has authenticated: `user((req) => req.user?.id)`. Its key is `@user/` and the id. */
export const user: (find: FindId) => KeyResolver<Request> = userKey

/** The tenant on whose account a request is made: `tenant((req) => req.tenant?.id)`. Its key is `@tenant/` and the id. */
export const tenant: (find: FindId) => KeyResolver<Request> = tenantKey

/** Several identities as one, such as account and address; missing when any of them is. */
export const all: CombineKeys = allKeys

/** The first identity that a request has, such as its API key, else its address. */
export const firstOf: CombineKeys = firstOfKeys

/**
 * A limit for each tier of clients: whole numbers, `unlimited`, functions, `schedule(…)` or `adaptive(…)`. A client whose tier changes keeps
 * its counts.
 * @example
 * rateLimit({ window: '1m', limit: tiers({ free: 100, paid: 10_000, default: 60 }, (req) => req.user?.plan) })
 * @throws SluiceError when an entry of the table is no limit
 */
export const tiers: <R extends Request = Request>(
  table: TierTable<NoInfer<R>>,
  tierOf: (request: R) => MaybePromise<string | null | undefined>,
) => LimitSource<R> = tiersOf
