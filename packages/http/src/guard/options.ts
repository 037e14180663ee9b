import type { LimiterSettings, MaybePromise, Observers } from '@sluice/core'
import type { Dialect } from '@sluice/headers'
import type { ListOptions } from '../access/lists.ts'
import type { Admission } from '../admission/port.ts'
import type { MissingKey } from '../keys/missing-key.ts'
import type { KeyResolver } from '../keys/resolver.ts'
import type { RequestDecision } from '../lifecycle/decision.ts'
import type { SettlementOptions } from '../lifecycle/settlement.ts'
import type { ShedOptions } from '../limits/shedder.ts'
import type { HttpPolicyFields, HttpPolicyOptions } from './http-policy.ts'
import type { IdempotencyOptions } from './idempotency-options.ts'
import type { GuardPenalty } from './penalty.ts'
import type { PerRequest } from './per-request.ts'

/** What a client reads when it is refused: a text, or an object that is sent as JSON. */
export type Message = string | object

/** What happens to CORS preflights: they pass uncounted, or count as any other request. */
export type Preflights = 'pass' | 'count'

/**
 * What HTTP adds to one list of policies. Functions may be async; what they throw or reject with goes to the error handling of the
 * framework.
 * @typeParam Native the framework's request
 * @typeParam Handler how the framework has somebody reply
 */
export interface PolicyGuardSettings<Native, Handler = never>
  extends SettlementOptions<Native>,
    IdempotencyOptions<Native>,
    Omit<LimiterSettings, 'penalty' | keyof Observers>,
    Observers<Native>,
    ListOptions {
  /**
   * Who is counted: a resolver such as `user(fn)`, or a function of the request.
   * @default ip()
   */
  key?: KeyResolver<Native>
  /**
   * Blocks whoever is denied too often, each time for longer, or whom `limiter.block` names: on all routes of the guard, but those that have a
   * penalty of their own, or `false`.
   * @default none
   */
  penalty?: GuardPenalty<Native> | false
  /** What happens to a request that has no key. @default 'ip' */
  onMissingKey?: MissingKey
  /**
   * Whether CORS preflights (OPTIONS with `Origin` and `Access-Control-Request-Method`) pass uncounted, or count as other requests do. Any client
   * can send requests of that shape, to a handler that serves OPTIONS as it serves other methods.
   * @default 'count' on a route for all methods (`app.all('/graphql', rateLimit(…), handler)`); elsewhere one passes, but a handler's answer without CORS fields is
   * charged afterwards, and has those that follow from its address counted
   */
  preflights?: Preflights
  /** What takes requests over in place of the application, or of a refusal: a queue. @default none */
  admission?: Admission<Native>
  /** Units that a request takes: a whole number ≥ 0, or a function that finds it. @default 1 */
  cost?: PerRequest<Native, number>
  /** Requests that pass uncounted, without headers. @default none */
  skip?: (native: Native) => MaybePromise<boolean>
  /**
   * The rate-limit headers to send; `[]` for Retry-After alone. Of several limiters on one response the first decides which
   * IETF draft, and which kind of legacy, is spoken.
   * @default ['draft-11', 'legacy']
   */
  headers?: readonly Dialect[]
  /** Lists the headers in Access-Control-Expose-Headers, so that browsers show them to other origins. @default false */
  exposeHeaders?: boolean
  /** Takes the headers off a redirect, which some clients would wait before following. @default false */
  hideOnRedirect?: boolean
  /** Adds `X-RateLimit-Used` and `X-RateLimit-Resource` to the legacy headers. @default false */
  githubExtras?: boolean
  /**
   * Adds up to this share of the wait to Retry-After, at random, so that clients do not come back all at once: 0 to 1.
   * @default 0
   */
  retryJitter?: number
  /**
   * `leaky-bucket` only: the most requests that are held at once in this process, a whole number ≥ 0; one more is refused with 503, and
   * not charged.
   * @default 10_000
   */
  maxWaiting?: number
  /** Refuses the less important classes of requests first, with 503 and uncounted, while there is too much to do. @default none */
  shed?: ShedOptions<Native>
  /**
   * The status of a refused request, 400 to 599. What is not the client's doing is always 503: a store that failed, a full waiting room, a
   * limit that is reduced for now.
   * @default 429
   */
  statusCode?: number
  /** Replaces the problem body of a refused request: a text, an object (sent as JSON), or a function that finds one. */
  message?: Message | ((native: Native, decision: RequestDecision) => MaybePromise<Message>)
  /**
   * Replies to a refused request in our stead; status and headers are set already. `'throw'` hands a `RateLimitError` to the error handling of the framework.
   */
  handler?: Handler | 'throw'
}

/**
 * What one list of policies is decided by: `policies`, or the fields of one policy at the top level (`limit`, `window`, …) as shorthand; and what
 * HTTP adds. Whether they fit together is checked when the guard is made.
 */
export interface PolicyGuardOptions<Native, Handler = never>
  extends Partial<HttpPolicyFields<Native>>,
    PolicyGuardSettings<Native, Handler> {
  /** The quotas of every request: decided together, all or nothing. */
  policies?: readonly HttpPolicyOptions<Native>[]
}
