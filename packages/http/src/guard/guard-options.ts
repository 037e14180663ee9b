import type { Without } from '@sluice/core'
import type { Profiles } from '../routes/catalogue.ts'
import type { Routes } from '../routes/rules.ts'
import type { HttpPolicyOptions, Shorthand } from './http-policy.ts'
import type { PolicyGuardOptions, PolicyGuardSettings } from './options.ts'
import type { GuardPenalty } from './penalty.ts'

/** The options of a guard beside its policies: what applies to all requests, and what to some. */
export interface GuardSettings<Native, Handler = never>
  extends PolicyGuardSettings<Native, Handler> {
  /**
   * What applies to some requests in place of, or beside, the policies above, by method and path: `'POST /login'`, `'GET /search/:q'`,
   * `'/files/*'`. `false` leaves alone what is written, and no alias of it. The most specific one counts.
   * @default none
   */
  routes?: Routes<Native, Handler>
  /** Policies by name, which count only where routes name them: one quota each, wherever it is named. @default none */
  profiles?: Profiles<Native>
}

/** All fields of a guard's options, whether or not they fit together: that is checked when the guard is made. */
export type GuardFields<Native, Handler = never> = PolicyGuardOptions<Native, Handler> &
  GuardSettings<Native, Handler>

/** No policies for all requests. */
export type NoPolicies = Without<Shorthand | 'policies'>

/** Policies for all requests: a list, or the fields of one policy as shorthand. */
type GuardPolicies<Native> =
  | (HttpPolicyOptions<Native> & Without<'policies'>)
  | ({
      /** The quotas of every request: decided together, all or nothing. */
      policies: readonly HttpPolicyOptions<Native>[]
    } & Without<Shorthand>)

/** The options of a guard: settings, and policies for all requests, for some (`routes`), or none beside a penalty. */
export type GuardOptions<Native, Handler = never> = GuardSettings<Native, Handler> &
  (
    | GuardPolicies<Native>
    | (NoPolicies & { routes: Routes<Native, Handler> })
    | (NoPolicies & { penalty: GuardPenalty<Native> })
  )
