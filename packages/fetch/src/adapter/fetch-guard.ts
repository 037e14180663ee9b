import type { Guard, GuardOptions, Router } from '@sluice/http'
import { createGuard, invalid } from '@sluice/http'

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

/**
 * Makes a guard of the options of `rateLimit`. Returns it with the option that it leaves alone.
 * @param ownFields further options of the adapter
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createFetchGuard<Native extends object, Handler, Asked extends readonly unknown[]>(
  options: GuardOptions<Native, Handler> & FetchOptions<Asked>,
  ownFields: readonly string[] = [],
): { guard: Guard<Native, Handler>; addressOf: FetchOptions<Asked>['addressOf'] } {
  const { addressOf, router }: typeof options = Object(options)
  const guard = createGuard<Native, Handler>(options, {
    adapterFields: ['addressOf', 'router', ...ownFields],
    ...(router && { router }),
  })
  if (addressOf !== undefined && typeof addressOf !== 'function') {
    throw invalid({ option: 'addressOf' }, addressOf, 'a function that finds an address')
  }
  return { guard, addressOf }
}
