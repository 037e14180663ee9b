import type {
  Guard,
  GuardOptions,
  Handler,
  HttpRequest,
  RequestContent,
  Router,
} from '@sluice/http'
import {
  createGuard,
  handlerRequestOf,
  invalid,
  laxRouting,
  throwingObjects,
  warnOnce,
} from '@sluice/http'

/** The options that every adapter of fetch has beside those of the guard. */
export interface FetchOptions<Asked extends readonly unknown[]> {
  /**
   * Finds the client's address, such as in the header that your own proxy sets. `onMissingKey`
   * decides on a request without an address. With 'ip' the request is an error, since it would
   * share a key.
   * @default the address of the connection
   */
  addressOf?: ((...asked: Asked) => string | undefined) | undefined
  /**
   * Router for `routes`: `nodeRouter` of `@sluice/http/adapter`, which needs Node. @default none
   */
  router?: Router | undefined
}

/** A guard, and the option that the guard leaves alone. */
interface FetchGuard<Native extends object, Handler, Asked extends readonly unknown[]> {
  readonly guard: Guard<Native, Handler>
  readonly addressOf: ((...asked: Asked) => string | undefined) | undefined
}

/**
 * Makes a guard of the options of `rateLimit`.
 * @param ownFields further options of the adapter
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createFetchGuard<Native extends object, Handler, Asked extends readonly unknown[]>(
  options: GuardOptions<Native, Handler> & FetchOptions<Asked>,
  ownFields: readonly string[] = [],
): FetchGuard<Native, Handler, Asked> {
  const adapterFields = ['addressOf', 'router', ...ownFields]
  const { addressOf, router }: typeof options = Object(options)
  const place = {
    where: 'rateLimit',
    adapterFields,
    routing: laxRouting,
    ...(router && { router }),
  }
  const guard = createGuard<Native, Handler>(options, place)
  if (addressOf !== undefined && typeof addressOf !== 'function') {
    throw invalid({ option: 'addressOf' }, addressOf, 'a function that finds an address')
  }
  if (options.store === undefined && hasIsolates()) warnOnce(countsForItself)
  return { guard, addressOf }
}

const countsForItself =
  'rateLimit counts in memory, and this runtime starts many isolates, of which each counts for itself: ' +
  'give rateLimit a store that they share'

/** Tells whether the runtime is one that is known to start many isolates. */
function hasIsolates(): boolean {
  const agent: unknown = Reflect.get(Object(Reflect.get(globalThis, 'navigator')), 'userAgent')
  return agent === 'Cloudflare-Workers' || Reflect.has(globalThis, 'EdgeRuntime')
}

/** The part of a context that a mounted handler sees. */
interface MountedRequest extends HttpRequest {
  readonly content: RequestContent
  readonly peer: string | undefined
}

/**
 * Has a mounted handler answer; `undefined`: it leaves the request alone.
 * @param prefix the path under which the handler is mounted
 */
export async function answerOf(
  handler: Handler<Request>,
  native: Request,
  { context, prefix }: { context: MountedRequest; prefix: string },
): Promise<Response | undefined> {
  const { url } = context.content
  const sent = { url, originalUrl: url, peer: () => context.peer }
  const request = handlerRequestOf({ native, request: context }, sent, prefix)
  const reply = await throwingObjects(() => handler(request))
  if (!reply) return undefined
  const { status, headers = {}, body = null } = reply
  return new Response(body, { status, headers })
}
