import {
  type ApiKeyOptions,
  all as allKeys,
  apiKey as apiKeyOf,
  bearer as bearerOf,
  type CredentialOptions,
  firstOf as firstOfKeys,
  type Id,
  type IdentityResolver,
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
type Resolvers = KeyResolver<Request>[]
type ById = IdentityResolver<Request, [id: Id]>
type ByCredential = IdentityResolver<Request>

// What is generic, bound to the request of this framework: so a function written inside them knows its type.

/** The user whom something before has authenticated: `user((req) => req.user?.id)`. Its key is `@user/` and the id. */
export const user: (find: FindId) => ById = userKey

/** The tenant on whose account a request is made: `tenant((req) => req.tenant?.id)`. Its key is `@tenant/` and the id. */
export const tenant: (find: FindId) => ById = tenantKey

/**
 * The API key of a request. **Anybody can make up API keys**: give `verify`, or refuse unknown ones before the limiter; else each made-up
 * key gets a full limit of its own. Count logins by address and account, never by this alone.
 * @example
 * key: firstOf(apiKey({ verify: (key) => issued.has(key) }), ip())
 */
export const apiKey: (options?: ApiKeyOptions<Request>) => ByCredential = apiKeyOf

/**
 * The token of `Authorization: Bearer <token>`; missing with another scheme. **Anybody can make up tokens**: give `verify`, or refuse
 * unknown ones before the limiter; else each made-up token gets a full limit of its own.
 * @example
 * key: firstOf(bearer({ verify: async (token) => (await sessionOf(token)) !== undefined }), ip())
 */
export const bearer: (options?: CredentialOptions<Request>) => ByCredential = bearerOf

/** Several identities as one, such as account and address; missing when any of them is. */
export const all: (...resolvers: Resolvers) => IdentityResolver<Request, unknown[]> = allKeys

/** The first identity that a request has, such as its API key, else its address. */
export const firstOf: (...resolvers: Resolvers) => KeyResolver<Request> = firstOfKeys

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
