import type { Guard, GuardOptions, MaybePromise, RequestDecision, Router } from '@sluice/http'
import { createGuard, functionOption, ProxyWatch } from '@sluice/http'

/** Details of a request, which the application passes on from its runtime. */
export interface FetchInfo {
  /** The address of the connection, from the runtime. Never text that a client can send. */
  readonly remoteAddress?: string | undefined
  /** Keeps the runtime awake for work after the response. @default it stays awake anyway */
  waitUntil?(work: Promise<unknown>): void
}

/** Replies to a refused request. Takes the framework's handler arguments, then the decision. */
export type FetchReply<Asked extends readonly unknown[], Decision = RequestDecision> = (
  ...asked: [...Asked, decision: Decision]
) => MaybePromise<Response>

/** The options of every fetch adapter, in addition to those of the guard. */
export interface FetchOptions<Asked extends readonly unknown[]> {
  /**
   * Returns the client's address, for example from a header that your proxy sets. If it returns
   * none, `onMissingKey` applies. With 'ip' the request fails, because it would share a key.
   * @default the address of the connection
   */
  addressOf?: ((...asked: Asked) => string | undefined) | undefined
  /** Router for `routes`: on Node, `nodeRouter` from `@sluice/http/adapter`. @default none */
  router?: Router | undefined
}

/** Warns about a proxy if the option `addressOf` is not set. */
export const proxyWatch: ProxyWatch = new ProxyWatch({
  trust: 'addressOf',
  trustOne: 'behind a proxy, set the option addressOf',
  trustAll: 'take the address that your outermost proxy added',
})

/**
 * Creates a guard from the options of `rateLimit`.
 * @param ownFields names of the adapter's own options
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function createFetchGuard<Native extends object, Handler>(
  options: GuardOptions<Native, Handler> & FetchOptions<never>,
  ownFields: readonly string[] = [],
): Guard<Native, Handler> {
  const { addressOf, router }: typeof options = Object(options)
  functionOption('a function that returns an address')(addressOf, 'addressOf')
  return createGuard(options, { adapterFields: ['addressOf', 'router', ...ownFields], router })
}
