import type { Guard, GuardPlace } from '../guard/guard.ts'
import { createGuard as createGuardAnywhere } from '../guard/live-guard.ts'
import type { GuardOptions, LiveGuardFields } from '../options/live-policies.ts'
import type { GuardFields, GuardSettings, NoPolicies } from '../options/options.ts'
import { nodeRouter } from '../routes/node-router.ts'

/** The options besides `global`. With `global: false`, all policies may come from routes. */
export type GlobalOptions<Native, Handler = never> =
  | GuardOptions<Native, Handler>
  | (GuardSettings<Native, Handler> & NoPolicies & { global: false })

/**
 * Creates the guard of an adapter on Node, like `createGuard` of the main entry, but with Node's
 * router for `routes`. The main entry imports nothing from Node, so its callers pass a router.
 *
 * ```ts
 * const guard = createGuard<Context, RateLimitHandler>(options, { routing })
 * ```
 *
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function createGuard<Native extends object, Handler = never>(
  options: GuardFields<Native, Handler> | LiveGuardFields<Native, Handler>,
  place: Partial<Omit<GuardPlace, 'router'>> = {},
): Guard<Native, Handler> {
  return createGuardAnywhere(options, { router: nodeRouter, ...place })
}
