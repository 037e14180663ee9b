import type {
  AutomaticPenalty,
  LimiterSettings,
  ManualPenalty,
  MaybePromise,
  ObserverOptions,
  Optional,
  Without,
} from '@sluice/core'
import type { Dialect } from '@sluice/headers'
import type { ListOptions } from '../access/lists.ts'
import type { MissingKey } from '../keys/missing-key.ts'
import type { KeyResolver } from '../keys/resolver.ts'
import type { ShedOptions } from '../limits/shedder.ts'
import type { RequestDecision } from '../request/passage.ts'
import type { PerRequest } from '../request/user-functions.ts'
import type { Admission } from './admission.ts'
import type { HttpPolicyFields, HttpPolicyOptions, LimitForm, Shorthand } from './policy-options.ts'
import type { SettlementOptions } from './settlement.ts'

interface KeyedPenalty<Native> {
  /** The client that collects strikes, and is blocked. @default the guard's `key` */
  key?: KeyResolver<Native> | undefined
}

/**
 * A penalty of HTTP requests. It may block another identity than the one that the policies count.
 */
export type GuardPenalty<Native> = (AutomaticPenalty | ManualPenalty) & KeyedPenalty<Native>

/** Options that tell the retries of one request from other requests. */
export interface IdempotencyOptions<Native> {
  /**
   * The key that a client sends again with a retry, so that both are charged once: `true` for the
   * header Idempotency-Key, or a resolver. A retry has the key, the method, the path, the cost and
   * the identity of the request before it. In the longest window of the policies, three retries are
   * free. `false`: none, for a route.
   * @default none: every request is charged
   */
  idempotencyKey?: boolean | KeyResolver<Native> | undefined
}

/** The body of a refusal: a text, or an object that is sent as JSON. */
export type Message = string | object

/** The treatment of CORS preflights: they count as any other request, or pass uncounted. */
export type Preflights = 'pass' | 'count'

/**
 * Settings that HTTP adds to one list of policies. Functions may be async; their errors go to the
 * error handling of the framework.
 * @typeParam Native the framework's request
 * @typeParam Handler the function by which users of the framework reply
 */
interface PolicyGuardSettings<Native, Handler = never>
  extends SettlementOptions<Native>,
    IdempotencyOptions<Native>,
    Omit<LimiterSettings, 'penalty' | 'observers'>,
    ObserverOptions<Native>,
    ListOptions {
  /** The client that is counted: `user(fn)`, or a function of the request. @default ip() */
  key?: KeyResolver<Native> | undefined
  /**
   * Blocks clients that are denied too often, each time for longer, and keys that `limiter.block`
   * names. It holds on all routes of the guard, except those with a penalty of their own or
   * `false`.
   * @default none
   */
  penalty?: GuardPenalty<Native> | false | undefined
  /** The treatment of a request without a key. @default 'ip' */
  onMissingKey?: MissingKey | undefined
  /**
   * Tells whether CORS preflights (OPTIONS with `Origin` and `Access-Control-Request-Method`) count
   * as other requests do. With `'pass'`, whatever runs for OPTIONS behind the limiter is not
   * limited: any client can send requests of that shape. Blocked clients are still refused. Put
   * CORS middleware before the limiter instead, so that it answers preflights first.
   * @default 'count', with a warning at the first preflight
   */
  preflights?: Preflights | undefined
  /** A queue that takes requests before the application, or in place of a refusal. @default none */
  admission?: Admission<Native> | undefined
  /** Units that a request takes: a whole number ≥ 0, or a function that finds it. @default 1 */
  cost?: PerRequest<Native, number> | undefined
  /** Requests that pass uncounted, without headers. @default none */
  skip?: ((native: Native) => MaybePromise<boolean>) | undefined
  /**
   * The rate-limit headers to send; `[]` for Retry-After alone. If several limiters write to one
   * response, the first one chooses the IETF draft and the kind of legacy fields.
   * @default ['draft-11', 'legacy']
   */
  headers?: readonly Dialect[] | undefined
  /** Lists the headers in Access-Control-Expose-Headers, for other origins. @default false */
  exposeHeaders?: boolean | undefined
  /** Removes the headers from redirects: some clients wait before they follow. @default false */
  hideOnRedirect?: boolean | undefined
  /**
   * Adds up to this share of the wait to Retry-After, at random, so that clients do not come back
   * all at once: 0 to 1.
   * @default 0
   */
  retryJitter?: number | undefined
  /**
   * `leaky-bucket` only: the most requests that this process holds at once, a whole number ≥ 0. Any
   * further request is refused with 503, and not charged.
   * @default 10_000
   */
  maxWaiting?: number | undefined
  /**
   * Refuses the less important classes of requests first, with 503 and uncounted, while there is
   * too much to do. @default none
   */
  shed?: ShedOptions<Native> | undefined
  /**
   * The status of a refused request, 400 to 599. Refusals without the client's fault are always
   * 503: a store that failed, a full delay queue, a limit that is reduced for now.
   * @default 429
   */
  statusCode?: number | undefined
  /**
   * Replaces the problem body of a refused request: a text, an object (sent as JSON), or a function
   * that finds one.
   */
  message?:
    | Message
    | ((native: Native, decision: RequestDecision) => MaybePromise<Message>)
    | undefined
  /**
   * Replies to a refused request in place of Sluice; status and headers are set already. `'throw'`
   * hands a `RateLimitError` to the error handling of the framework.
   */
  handler?: Handler | 'throw' | undefined
}

/**
 * The options of one list of policies: `policies`, or the fields of one policy at the top level
 * (`limit`, `window`, …) as shorthand; and the settings of HTTP. The guard checks whether they fit
 * together.
 */
export interface PolicyGuardOptions<Native, Handler = never>
  extends Optional<HttpPolicyFields<Native>>,
    PolicyGuardSettings<Native, Handler> {
  /** The quotas of every request: decided together, all or nothing. */
  policies?: readonly HttpPolicyOptions<Native>[] | undefined
}

/** Policies by name, for routes to refer to: in the options under `profiles`. */
export interface Profiles<Native> {
  readonly [name: string]: Profile<Native>
}

/** A policy whose name is its place in the table. */
export type Profile<Native> = HttpPolicyOptions<Native> & Without<'name'>

interface RouteSettings<Native, Handler> extends PolicyGuardSettings<Native, Handler> {
  /**
   * Tells whether the policies given here take the place of those around it, or are decided
   * together with them, all or nothing.
   * @default 'replace'
   */
  combine?: 'replace' | 'add' | undefined
}

type RoutePolicy<Native> = Without<'policies'> &
  Optional<Omit<HttpPolicyFields<Native>, keyof LimitForm<Native>>> &
  (LimitForm<Native> | Without<'limit'>)

/**
 * The limits of one route. Options that it leaves out are as in the options around it. A policy may
 * be given by the name that it has there. It is then one quota, wherever it is named.
 */
export type RouteOverride<Native, Handler = never> = RouteSettings<Native, Handler> &
  (
    | RoutePolicy<Native>
    | ({ policies: readonly (HttpPolicyOptions<Native> | string)[] } & Without<Shorthand>)
  )

/**
 * Limits by method and path: `{ 'POST /login': { limit: 5, window: '1m' }, 'GET /search/:q':
 * 'expensive', '/health': false }`. A text is the name of a policy, `false` exempts the requests.
 * Paths are written as for find-my-way.
 */
export interface Routes<Native, Handler = never> {
  readonly [route: string]: RouteOverride<Native, Handler> | string | false
}

/** The options of a guard beside its policies, for all requests and for some. */
export interface GuardSettings<Native, Handler = never>
  extends PolicyGuardSettings<Native, Handler> {
  /**
   * Limits for some requests, in place of the policies above or beside them, by method and path:
   * `'POST /login'`, `'GET /search/:q'`, `'/files/*'`. `false` exempts exactly the written path,
   * and no alias of it. The most specific key counts.
   * @default none
   */
  routes?: Routes<Native, Handler> | undefined
  /**
   * Policies by name, which count only where routes name them: one quota each, wherever it is
   * named. @default none
   */
  profiles?: Profiles<Native> | undefined
}

/** All fields of a guard's options, whether or not they fit together. The guard checks that. */
export type GuardFields<Native, Handler = never> = PolicyGuardOptions<Native, Handler> &
  GuardSettings<Native, Handler>

/** No policies for all requests. */
export type NoPolicies = Without<Shorthand | 'policies'>

type GuardPolicies<Native> =
  | (HttpPolicyOptions<Native> & Without<'policies'>)
  | ({
      /** The quotas of every request: decided together, all or nothing. */
      policies: readonly HttpPolicyOptions<Native>[]
    } & Without<Shorthand>)

/**
 * The options of a guard: settings, and policies for all requests, for some (`routes`), or none
 * beside a penalty.
 */
export type FixedGuardOptions<Native, Handler = never> = GuardSettings<Native, Handler> &
  (
    | GuardPolicies<Native>
    | (NoPolicies & { routes: Routes<Native, Handler> })
    | (NoPolicies & { penalty: GuardPenalty<Native> })
  )
