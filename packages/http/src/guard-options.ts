import type { PolicyGuardOptions } from './policy-guard-options.ts'
import type { Profiles } from './routes/policy-catalogue.ts'
import type { Routes } from './routes/route-rules.ts'

/** The options of a guard: what applies to all requests, and what to some. */
export interface GuardOptions<Native, Handler = never> extends PolicyGuardOptions<Native, Handler> {
  /**
   * What applies to some requests in place of, or beside, the policies above, by method and path: `'POST /login'`, `'GET /search/:q'`,
   * `'/files/*'`. `false` leaves alone what is written, and no alias of it. The most specific one counts.
   * @default none
   */
  routes?: Routes<Native, Handler>
  /** Policies by name, which count only where routes name them: one quota each, wherever it is named. @default none */
  profiles?: Profiles<Native>
}
