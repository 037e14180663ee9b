import {
  checkedElsewhere,
  type LimiterSettings,
  limiterFields,
  type ObserverOptions,
  type Option,
  type Optional,
  type OptionsOf,
  type PolicyFields,
  policyFields,
  type WindowForm,
  type Without,
} from '@sluice/core'
import type { LimitOption, LimitSource, LimitValue } from '../limits/source.ts'
import { type GuardPenalty, GuardTable, SharedTable } from './option-table.ts'

/** All fields of a policy for HTTP requests, whether or not they fit together. */
export interface HttpPolicyFields<Native>
  extends Omit<PolicyFields, 'limit' | 'enforce' | 'reserve'>,
    OptionsOf<SharedTable<Native>> {
  /**
   * Units that one key may take in any window: a whole number ≥ 0, `unlimited`, or a function that
   * returns either. `tiers(…)`, `schedule(…)` and `adaptive(…)` are limits that change on their
   * own.
   */
  limit: LimitOption<Native>
}

/**
 * A function may return no limit, so it needs a default. The form without a function comes last,
 * because compilers name that one in errors.
 */
type LimitForm<Native> =
  | { limit: LimitOption<Native>; defaultLimit: number }
  | { limit: LimitValue | LimitSource<Native>; defaultLimit?: number | undefined }

/** A quota for HTTP requests. Its options may depend on the request. */
export type HttpPolicyOptions<Native> = Omit<
  HttpPolicyFields<Native>,
  keyof WindowForm | keyof LimitForm<Native>
> &
  WindowForm &
  LimitForm<Native>

/** Fields that are shorthand for a single policy. The others are settings of a guard too. */
type Shorthand = Exclude<
  keyof HttpPolicyFields<never>,
  'key' | 'cost' | 'chargeWhen' | 'refundWhen' | 'failureMode'
>

/** The limiter options that guards have too. */
type OfLimiters<Native> = Omit<LimiterSettings, 'penalty' | 'observers'> & ObserverOptions<Native>

/** The options that a table adds, without the options of a single policy. */
type Settings<Table> = Omit<OptionsOf<Table>, 'defaultLimit' | 'enforce' | 'reserve'>

/**
 * The options of one list of policies: `policies`, or the fields of one policy at the top level
 * (`limit`, `window`, …) as shorthand; and the settings of HTTP. The guard checks whether they fit
 * together.
 */
export interface PolicyGuardOptions<Native, Handler = never>
  extends Optional<HttpPolicyFields<Native>>,
    OfLimiters<Native>,
    OptionsOf<GuardTable<Native, Handler>> {
  /** Quotas for every request. They are enforced together, all or nothing. */
  policies?: readonly HttpPolicyOptions<Native>[] | undefined
}

/** Policies by name, for routes to refer to: in the options under `profiles`. */
export interface Profiles<Native> {
  readonly [name: string]: Profile<Native>
}

/** A policy named by its key in the table. */
export type Profile<Native> = HttpPolicyOptions<Native> & Without<'name'>

class RouteTable<Native, Handler> extends GuardTable<Native, Handler> {
  /**
   * Replaces the surrounding policies with those given here, or enforces both together, all or
   * nothing.
   * @default 'replace'
   */
  combine?: Option<'replace' | 'add'> = checkedElsewhere
}

export class AppTable<Native, Handler> extends GuardTable<Native, Handler> {
  /**
   * Limits by method and path, which replace the guard's policies or are added to them: `'POST
   * /login'`, `'GET /search/:q'`, `'/files/*'`. `false` exempts exactly the written path, and no
   * alias of it. The most specific key counts.
   * @default none
   */
  routes?: Option<Routes<Native, Handler>> = checkedElsewhere
  /**
   * Policies by name, which apply only to routes that name them. Each policy is one quota for all
   * these routes. @default none
   */
  profiles?: Option<Profiles<Native>> = checkedElsewhere
}

interface RouteSettings<Native, Handler>
  extends OfLimiters<Native>,
    Settings<RouteTable<Native, Handler>> {}

type RoutePolicy<Native> = Without<'policies'> &
  Optional<Omit<HttpPolicyFields<Native>, keyof LimitForm<Native>>> &
  (LimitForm<Native> | Without<'limit'>)

/**
 * The limits of one route. Omitted options come from the surrounding options. A policy may be
 * referred to by its name there; it is one quota for all routes that name it.
 */
export type RouteOverride<Native, Handler = never> = RouteSettings<Native, Handler> &
  (
    | RoutePolicy<Native>
    | ({ policies: readonly (HttpPolicyOptions<Native> | string)[] } & Without<Shorthand>)
  )

/**
 * Limits by method and path: `{ 'POST /login': { limit: 5, window: '1m' }, 'GET /search/:q':
 * 'expensive', '/health': false }`. A string is the name of a policy, `false` exempts the requests.
 * Paths use find-my-way's syntax.
 */
export interface Routes<Native, Handler = never> {
  readonly [route: string]: RouteOverride<Native, Handler> | string | false
}

/** The options of a guard besides its policies, for all requests and for some. */
export interface GuardSettings<Native, Handler = never>
  extends OfLimiters<Native>,
    Settings<AppTable<Native, Handler>> {}

/** All fields of a guard's options, whether or not they fit together. The guard checks that. */
export type GuardFields<Native, Handler = never> = PolicyGuardOptions<Native, Handler> &
  GuardSettings<Native, Handler>

/** No policies for all requests. */
export type NoPolicies = Without<Shorthand | 'policies'>

type GuardPolicies<Native> =
  | (HttpPolicyOptions<Native> & Without<'policies'>)
  | ({
      /** Quotas for every request. They are enforced together, all or nothing. */
      policies: readonly HttpPolicyOptions<Native>[]
    } & Without<Shorthand>)

/**
 * The options of a guard: settings, and policies for all requests or for some (`routes`). With a
 * penalty, policies may be omitted.
 */
export type FixedGuardOptions<Native, Handler = never> = GuardSettings<Native, Handler> &
  (
    | GuardPolicies<Native>
    | (NoPolicies & { routes: Routes<Native, Handler> })
    | (NoPolicies & { penalty: GuardPenalty<Native> })
  )

/** The owner of options: a guard, a route, or one policy in `policies` or `profiles`. */
export type OptionOwner = 'guard' | 'route' | 'policy'

/** Core checks the options of its policies and limiters. */
const names: { readonly [owner in OptionOwner]: readonly string[] } = {
  guard: [...limiterFields, 'policies', ...Object.keys(new AppTable())],
  route: [...limiterFields, 'policies', ...Object.keys(new RouteTable())],
  policy: ['failureMode', ...Object.keys(new SharedTable())],
}

export function optionsOf(owner: OptionOwner): readonly string[] {
  return [...new Set([...policyFields, ...names[owner]])]
}
