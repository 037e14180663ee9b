import {
  all as allKeys,
  firstOf as firstOfKeys,
  type Id,
  type KeyResolver,
  type MaybePromise,
  tenant as tenantKey,
  user as userKey,
} from '@sluice/http'
import type { FastifyRequest } from 'fastify'

/** Finds an id in a request of Fastify. */
type FindId = (request: FastifyRequest) => MaybePromise<Id>
type CombineKeys = (...resolvers: KeyResolver<FastifyRequest>[]) => KeyResolver<FastifyRequest>

// The generic resolvers, bound to the request of this framework: so a function written inside them knows its type.

/** The user whom something before has authenticated: `user((req) => req.user?.id)`. Its key is `@user/` and the id. */
export const user: (find: FindId) => KeyResolver<FastifyRequest> = userKey

/** The tenant on whose account a request is made: `tenant((req) => req.tenant?.id)`. Its key is `@tenant/` and the id. */
export const tenant: (find: FindId) => KeyResolver<FastifyRequest> = tenantKey

/** Several identities as one, such as account and address; missing when any of them is. */
export const all: CombineKeys = allKeys

/** The first identity that a request has, such as its API key, else its address. */
export const firstOf: CombineKeys = firstOfKeys
