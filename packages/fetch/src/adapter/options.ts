import type { Guard, GuardOptions, MaybePromise, RequestDecision, Router } from '@sluice/http'
import { createGuard, functionOption, ProxyWatch } from '@sluice/http'

/** The part of a request that the application knows. */
export interface FetchInfo {
  /** The client's address, as the runtime tells it: no text that a client can send. */
  readonly remoteAddress?: string | undefined
  /** Keeps the runtime awake for the work after the response. @default it stays awake */
  waitUntil?(work: Promise<unknown>): void
}

/** Replies to a refused request, with the arguments of the framework's handlers. */
export type FetchReply<Asked extends readonly unknown[], Decision = RequestDecision> = (
  ...asked: [...Asked, decision: Decision]
) => MaybePromise<Response>

/** The options that every adapter of fetch has beside those of the guard. */
export interface FetchOptions<Asked extends readonly unknown[]> {
  /**
   * Returns the client's address, for example from a header that your proxy sets. If there is none,
   * `onMissingKey` applies. With 'ip' the request is an error, because it would share a key.
   * @default the address of the connection
   */
  addressOf?: ((...asked: Asked) => string | undefined) | undefined
  /**
   * Router for `routes`: `nodeRouter` from `@sluice/http/adapter`, which needs Node. @default none
   */
  router?: Router | undefined
}

/** Warns of a proxy if the option `addressOf` is not there. */
export const proxyWatch: ProxyWatch = new ProxyWatch({
  trust: 'addressOf',
  trustOne: 'behind a proxy give the option addressOf',
  trustAll: 'take the address that the outermost of your own proxies has written',
})

/**
 * Makes a guard of the options of `rateLimit`.
 * @param ownFields further options of the adapter
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createFetchGuard<Native extends object, Handler>(
  options: GuardOptions<Native, Handler> & FetchOptions<never>,
  ownFields: readonly string[] = [],
): Guard<Native, Handler> {
  const { addressOf, router }: typeof options = Object(options)
  functionOption('a function that finds an address')(addressOf, 'addressOf')
  return createGuard(options, { adapterFields: ['addressOf', 'router', ...ownFields], router })
}
