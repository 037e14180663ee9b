import type { Guard, GuardPlace } from '../guard/guard.ts'
import { createGuard as createGuardAnywhere } from '../guard/live-guard.ts'
import type { GuardOptions, LiveGuardFields } from '../options/live-policies.ts'
import type { GuardFields, GuardSettings, NoPolicies } from '../options/options.ts'
import { nodeRouter } from '../routes/node-router.ts'
import { laxRouting } from '../routes/router.ts'

/** The options beside `global`: where nothing else is limited, routes may bring all policies. */
export type GlobalOptions<Native, Handler = never> =
  | GuardOptions<Native, Handler>
  | (GuardSettings<Native, Handler> & NoPolicies & { global: false })

/**
 * Makes the guard of an adapter on Node: as `createGuard` of the main entry makes it, with the
 * router of Node for `routes`. The main entry has no import of Node, so a guard of that entry gets
 * its router from its caller.
 *
 * ```ts
 * const guard = createGuard<Context, RateLimitHandler>(options, { routing })
 * ```
 *
 * @param place the guard's name for messages (default 'rateLimit'), the framework's way to match
 * paths (default `laxRouting`), and the names of options that are the adapter's own
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createGuard<Native extends object, Handler = never>(
  options: GuardFields<Native, Handler> | LiveGuardFields<Native, Handler>,
  place: Partial<Omit<GuardPlace, 'router'>> = {},
): Guard<Native, Handler> {
  const defaults = { where: 'rateLimit', routing: laxRouting, router: nodeRouter }
  return createGuardAnywhere(options, { ...defaults, ...place })
}
