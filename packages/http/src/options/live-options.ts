import type { Without } from '@sluice/core'
import type { LivePolicies, NamedCode } from './live-policies.ts'
import type { FixedGuardOptions, NoPolicies, PolicyGuardOptions } from './options.ts'

/** All fields of a guard's options whose policies change while the application runs. */
export type LiveGuardFields<Native, Handler = never> = Omit<
  PolicyGuardOptions<Native, Handler>,
  keyof NoPolicies
> &
  NamedCode<Native> & {
    /** The policies: the result of `openPolicies` of `@sluice/policies`. */
    policies: LivePolicies
  }

/**
 * The options of a guard: settings, and policies. The policies are for all requests, for some
 * (`routes`), or change while the application runs. Beside a penalty there may be none.
 */
export type GuardOptions<Native, Handler = never> =
  | (FixedGuardOptions<Native, Handler> & Without<keyof NamedCode<Native>>)
  | (LiveGuardFields<Native, Handler> &
      Without<Exclude<keyof NoPolicies, 'policies'> | 'routes' | 'profiles'>)
