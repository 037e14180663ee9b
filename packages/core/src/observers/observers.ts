import type { Check } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { StoreRegion } from '../model/region.ts'
import type { ResilienceEvent } from '../model/resilience-event.ts'
import type { Outcome, StoreCall, StoreOp } from '../model/store.ts'
import type { StoreHealth } from '../model/store-health.ts'
import type { ErrorCode, SluiceError } from '../options/errors.ts'
import { functionOption, type Option } from '../options/option-table.ts'
import { invalid } from '../options/options.ts'
import type { PolicySetVersion } from '../policy/policy-registry.ts'

/** The request that an event is about. */
export interface EventSource<Request = unknown> {
  /** The framework's request; `undefined` if code called a limiter directly. */
  readonly request: Request | undefined
  /** Method and pattern of the route, `GET /users/:id`, or its rule; `undefined` if unmatched. */
  readonly route: string | undefined
  /** The request method, as sent; `undefined` if code called a limiter directly. */
  readonly method?: string | undefined
}

/** A request that was decided. */
export interface DecisionEvent<Request = unknown> extends EventSource<Request> {
  readonly decision: Decision
  /** The checks, in the order of the outcomes. Redact their keys before they reach a log. */
  readonly checks: readonly Check[]
  /**
   * The policy that denies for the longest; if none denies, the one that lets the fewest requests
   * pass. `undefined` if no policy was checked, or the failure mode `open` or `closed` answered.
   */
  readonly policy: Policy | undefined
  /** The key that `policy` counted, as resolved: an address, API key or user. Redact it in logs. */
  readonly key: string | undefined
  /** Digest of the key for logs, metrics and Redis keys: 22 characters, computed when read. */
  readonly digest: string | undefined
  /**
   * Source of the answer: the name of the store (`memory`, `redis`), the failure mode (`fallback`,
   * `open`, `closed`) or `shed`. `denial-cache` is a cached denial; `guard` means that no policy
   * was checked.
   */
  readonly answeredBy: string
  /**
   * Time of the decision, in ms of `performance.now()`; `undefined` if no policy was checked. It
   * saves observers from reading the clock. With the memory store, it may be 50 ms early.
   */
  readonly atMs?: number | undefined
  /** Duration of the decision, in ms. The memory store measures one in up to 16 decisions. */
  readonly durationMs: number
  /** True if a queue accepted the request. */
  readonly isQueued: boolean
}

/** A request that passed uncounted. */
export interface SkipEvent<Request = unknown> extends EventSource<Request> {
  /**
   * `skip`: by the option. `allow`: by a list. `preflight`: a CORS preflight, with `preflights:
   * 'pass'`. `route`: the route has no limits. `no-key`: no client could be found to count.
   */
  readonly reason: 'skip' | 'allow' | 'preflight' | 'route' | 'no-key'
}

/** A limiter, for observers. */
export interface LimiterEvent {
  /** Its policies; the penalty is the last one. */
  readonly policies: readonly Policy[]
  /** The version of the policies; `undefined` if they are defined in code. */
  readonly version?: PolicySetVersion | undefined
  /** The same object for all limiters whose stores count in one place. */
  readonly space: object
  /** Region of the store; `undefined` for a store without regions. */
  readonly region?: StoreRegion | undefined
  /** Reads the health of the store. */
  storeHealth(): StoreHealth
}

/** The outcomes of shadow policies, for a request that the enforced policies let pass. */
export interface ShadowEvent<Request = unknown> extends EventSource<Request> {
  /** The decision of the request. */
  readonly decision: Decision
  /**
   * One per shadow policy, each evaluated on its own; `allowed: false`: it would have denied.
   * Omitted if the store failed.
   */
  readonly outcomes: readonly Outcome[]
  /** The checks, in the order of the outcomes. Redact their keys before they reach a log. */
  readonly checks: readonly Check[]
  /** Digests of the keys for logs and metrics, in the order of the outcomes. Computed when read. */
  readonly digests: readonly string[]
}

/** A store that failed; the failure mode answered instead. */
export interface StoreErrorEvent {
  readonly op: StoreOp
  readonly error: SluiceError
}

/** An unusable value from outside, and its replacement. */
export interface InvalidEvent {
  readonly code: ErrorCode
  /** Names the place and the rule; never contains a key. */
  readonly message: string
}

/** A method: observers of any framework's requests fit every limiter. */
type Observe<Event> = { observe(event: Event): void }['observe']

/** Called as things happen. An exception is reported once as a warning, and changes no decision. */
export interface Observers<Request = unknown> {
  /**
   * Called once for each decision, allowed or denied, with the request, its route, the policy that
   * decides and the key: the place to log denials.
   * @example
   * onDecision({ decision, request, policy, key }) {
   *   if (!decision.allowed) request?.log.warn({ policy: policy?.name, key: redact(key) })
   * }
   */
  onDecision?: Observe<DecisionEvent<Request>> | undefined
  /** Called once for each request with shadow policies, when their outcomes are known. */
  onShadow?: Observe<ShadowEvent<Request>> | undefined
  /**
   * Called for each check that failed in the store, with an error whose `code` says why. Without
   * this method, the first failure is a warning.
   */
  onStoreError?: Observe<StoreErrorEvent> | undefined
  /**
   * Called when one of your functions returns an unusable value, and a default is used instead.
   * Without this method, the first occurrence is a warning.
   */
  onInvalid?: Observe<InvalidEvent> | undefined
  /**
   * Called when a deadline is missed, the circuit breaker changes, or the fallback begins or ends.
   * All limiters on a store share these events.
   */
  onResilience?: Observe<ResilienceEvent> | undefined
  /** Called once for each HTTP request that a guard lets pass uncounted. */
  onSkip?: Observe<SkipEvent<Request>> | undefined
  /** Called for each call to a store outside this process; one call has checks of many requests. */
  onStoreCall?: Observe<StoreCall> | undefined
  /** Called once when a limiter is created, with functions to query it later. */
  onLimiter?: Observe<LimiterEvent> | undefined
}

/** Observers as options. */
export interface ObserverOptions<Request = unknown> {
  /**
   * An object with methods such as `onDecision`, or a list of such objects.
   * @default none
   */
  observers?: Observers<Request> | readonly Observers<Request>[] | undefined
}

const eventFields: readonly (keyof Observers)[] = [
  'onDecision',
  'onShadow',
  'onStoreError',
  'onInvalid',
  'onResilience',
  'onSkip',
  'onStoreCall',
  'onLimiter',
]

/** Returns the observers of the option, which takes one object or a list. */
export function observerList<Request>({
  observers = [],
}: ObserverOptions<Request>): readonly Observers<Request>[] {
  return isList(observers) ? observers : [observers]
}

function isList<T>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value)
}

/** Checks the observers of limiters. */
export const checkObservers: (given: ObserverOptions['observers'], option: string) => unknown =
  observersOption<Observers>(eventFields)

/**
 * An option of observers: an object with at least one of these methods, or a list of such objects.
 * @throws SluiceError that names the place, its value and the legal form
 */
export function observersOption<Observer extends object>(
  methods: readonly (keyof Observer & string)[],
): Option<Observer | readonly Observer[], readonly Observer[]> {
  return (given, option) => {
    if (given === undefined) return []
    if (!isList(given)) return [checkObserver(given, option, methods)]
    return given.map((each, index) => checkObserver(each, `${option}[${index}]`, methods))
  }
}

const checkMethod = functionOption('a function')

function checkObserver<T>(observer: T, option: string, methods: readonly string[]): T {
  const given = methods.map((method) => [method, Reflect.get(Object(observer), method)] as const)
  const present = given.filter(([, value]) => value !== undefined)
  for (const [method, value] of present) checkMethod(value, `${option}.${method}`)
  if (present.length > 0) return observer
  const legal = `an object with at least one of the methods ${methods.join(', ')}`
  throw invalid({ option }, observer, legal)
}
