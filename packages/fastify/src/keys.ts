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
import type { FastifyRequest } from 'fastify'

/** Finds an id in a request of Fastify. */
type FindId = (request: FastifyRequest) => MaybePromise<Id>
type Resolvers = KeyResolver<FastifyRequest>[]
type ById = IdentityResolver<FastifyRequest, [id: Id]>
type ByCredential = IdentityResolver<FastifyRequest>

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
export const apiKey: (options?: ApiKeyOptions<FastifyRequest>) => ByCredential = apiKeyOf

/**
 * The token of `Authorization: Bearer <token>`; missing with another scheme. **Anybody can make up tokens**: give `verify`, or refuse
 * unknown ones before the limiter; else each made-up token gets a full limit of its own.
 * @example
 * key: firstOf(bearer({ verify: async (token) => (await sessionOf(token)) !== undefined }), ip())
 */
export const bearer: (options?: CredentialOptions<FastifyRequest>) => ByCredential = bearerOf

/** Several identities as one, such as account and address; missing when any of them is. */
export const all: (...resolvers: Resolvers) => IdentityResolver<FastifyRequest, unknown[]> = allKeys

/** The first identity that a request has, such as its API key, else its address. */
export const firstOf: (...resolvers: Resolvers) => KeyResolver<FastifyRequest> = firstOfKeys

/**
 * A limit for each tier of clients: whole numbers, `unlimited`, functions, `schedule(…)` or `adaptive(…)`. A client whose tier changes keeps
 * its counts.
 * @example
 * app.register(rateLimitPlugin, { window: '1m', limit: tiers({ free: 100, paid: 10_000, default: 60 }, (request) => request.user?.plan) })
 * @throws SluiceError when an entry of the table is no limit
 */
export const tiers: <R extends FastifyRequest = FastifyRequest>(
  table: TierTable<NoInfer<R>>,
  tierOf: (request: R) => MaybePromise<string | null | undefined>,
) => LimitSource<R> = tiersOf
