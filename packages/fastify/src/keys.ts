import { type RequestKeys, requestKeys } from '@sluice/http/adapter'
import type { FastifyRequest } from 'fastify'

// What is generic, bound to the request of this framework: so a function written inside them knows its type.

type Keys = RequestKeys<FastifyRequest>
const keys: Keys = requestKeys()

/** The user whom something before has authenticated: `user((request) => request.user?.id)`. Its key is `@user/` and the id. */
export const user: Keys['user'] = keys.user

/** The tenant on whose account a request is made: `tenant((request) => request.tenant?.id)`. Its key is `@tenant/` and the id. */
export const tenant: Keys['tenant'] = keys.tenant

/**
 * The API key of a request. **Anybody can make up API keys**: give `verify`, or refuse unknown ones before the limiter; else each made-up
 * key gets a full limit of its own. Count logins by address and account, never by this alone.
 * @example
 * key: firstOf(apiKey({ verify: (key) => issued.has(key) }), ip())
 */
export const apiKey: Keys['apiKey'] = keys.apiKey

/**
 * The token of `Authorization: Bearer <token>`; missing with another scheme. **Anybody can make up tokens**: give `verify`, or refuse
 * unknown ones before the limiter; else each made-up token gets a full limit of its own.
 * @example
 * key: firstOf(bearer({ verify: async (token) => (await sessionOf(token)) !== undefined }), ip())
 */
export const bearer: Keys['bearer'] = keys.bearer

/** Several identities as one, such as account and address; missing when any of them is. */
export const all: Keys['all'] = keys.all

/** The first identity that a request has, such as its API key, else its address. */
export const firstOf: Keys['firstOf'] = keys.firstOf

/**
 * A limit for each tier of clients: whole numbers, `unlimited`, functions, `schedule(…)` or `adaptive(…)`. A client whose tier changes keeps
 * its counts.
 * @example
 * app.register(rateLimitPlugin, { window: '1m', limit: tiers({ free: 100, paid: 10_000, default: 60 }, (request) => request.user?.plan) })
 * @throws SluiceError when an entry of the table is no limit
 */
export const tiers: Keys['tiers'] = keys.tiers
