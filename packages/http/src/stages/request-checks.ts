import { andThen, isPromise, type MaybePromise, warnOnce } from '@sluice/core'
import type { Access } from '../access/lists.ts'
import { insteadOfKey, type KeyOrMode } from '../keys/missing-key.ts'
import { type KeyResolver, resolveKey } from '../keys/resolver.ts'
import {
  type BoundPolicy,
  type LimitInForce,
  mayBeInShadow,
  type PolicyCheck,
  validCost,
  validEnforcement,
  validLimit,
} from '../options/bound-policy.ts'
import { withoutUndueStrikes, withStrikesLater } from '../options/penalty.ts'
import type { RequestContext } from '../request/context.ts'
import { isPreflight } from '../request/request.ts'
import { type Scope, scopedKey } from '../request/scope.ts'
import { inOrder, locating, type PerRequest } from '../request/user-functions.ts'
import type { GuardSetup } from './setup.ts'

export interface Asking<Native>
  extends Pick<RequestContext<Native>, 'native' | 'request' | 'scope'> {
  /** The answer of the lists for its address. @default 'unlisted' */
  readonly access?: Access
}

/**
 * The checks of a request. `deny`: the request has no key, and is to be refused. `block` and
 * `allow`: a list says so. An empty list: the request has no key, and passes uncounted.
 */
export type FoundChecks<Native extends object> =
  | readonly PolicyCheck<Native>[]
  | 'deny'
  | 'block'
  | 'allow'

/** So many requests without a key, and none with one, are no coincidence. */
const requestsWithoutKey = 3

/** Turns a request into checks. Keys, costs and limits that policies share are found once. */
export class RequestChecks<Native extends object> {
  readonly #setup: GuardSetup<Native>
  readonly #keys: readonly KeyResolver<Native>[]
  readonly #costs: readonly PerRequest<Native, number>[]
  /** The costs, if nothing but the key depends on the request: nearly always. */
  readonly #fixedCosts: readonly number[] | undefined
  /** Keys that only policies in shadow need: without them no request is refused. */
  readonly #shadowKeys: ReadonlySet<KeyResolver<Native>>

  /** Resolvers that have not found a key yet, with the requests for which they found none. */
  readonly #fruitless: Map<KeyResolver<Native>, number>

  constructor(setup: GuardSetup<Native>) {
    this.#setup = setup
    this.#keys = [...new Set(setup.policies.map(({ key }) => key))]
    this.#fruitless = new Map(this.#keys.map((key) => [key, 0]))
    this.#costs = [...new Set(setup.policies.map(({ cost }) => cost))]
    const numbers = this.#costs.filter((cost) => typeof cost === 'number')
    this.#fixedCosts = setup.policies.every(isFixed) ? numbers : undefined
    this.#shadowKeys = new Set(
      this.#keys.filter((key) =>
        setup.policies.every((bound) => bound.key !== key || mayBeInShadow(bound)),
      ),
    )
  }

  /** Finds the checks of a request, or why it has none. */
  find(context: Asking<Native>, access: Access = 'unlisted'): MaybePromise<FoundChecks<Native>> {
    const { native, request, scope } = context
    const asking = access === 'unlisted' ? context : { native, request, scope, access }
    const [only] = this.#keys
    if (!only || this.#keys.length > 1) {
      const keys = inOrder(this.#keys, (resolver) => this.#key(resolver, asking))
      return andThen(keys, (found) => this.#keyed(found, asking))
    }
    const key = this.#key(only, asking)
    if (!isPromise(key)) return this.#keyed([key], asking)
    return key.then((known) => this.#keyed([known], asking))
  }

  #keyed(keys: readonly KeyOrMode[], asking: Asking<Native>): MaybePromise<FoundChecks<Native>> {
    const { lists, policies: all } = this.#setup
    const { access = 'unlisted', native, scope: place } = asking
    const listed = lists ? lists.ofKeys(keys, access) : access
    if (listed !== 'unlisted') return listed
    if (keys.includes('deny')) return 'deny'
    const policies = keys.includes('skip')
      ? all.filter((bound) => this.#keyOf(bound, keys) !== undefined)
      : all
    if (policies.length === 0) return []
    if (this.#fixedCosts) return this.#checks(policies, { keys, costs: this.#fixedCosts, place })
    return andThen(this.#findCosts(native), (costs) =>
      andThen(this.#findLimits(policies, asking), (limits) =>
        this.#checks(policies, { keys, costs, limits, place }),
      ),
    )
  }

  #checks(
    policies: readonly BoundPolicy<Native>[],
    { keys, costs, limits, place }: FoundParts,
  ): readonly PolicyCheck<Native>[] {
    const checks = policies.map((bound, index) => {
      const { policy, scope = place } = bound
      const identity = this.#keyOf(bound, keys) ?? ''
      const cost = costs[this.#costs.indexOf(bound.cost)] ?? 1
      const key = policy.named ? identity : scopedKey(scope, identity)
      const inForce: LimitInForce = limits?.[index] ?? policy
      const { limit, reduced = false, shadow } = inForce
      const check = { policy, key, identity, cost, limit, bound, scope, reduced }
      return shadow === undefined ? check : { ...check, shadow }
    })
    if (this.#setup.strikesLater) return withStrikesLater(checks)
    return this.#setup.penalty ? withoutUndueStrikes(checks) : checks
  }

  #findCosts(native: Native): MaybePromise<readonly number[]> {
    const { policies, report } = this.#setup
    return inOrder(this.#costs, (cost) => {
      if (typeof cost !== 'function') return cost
      const isMeant = (bound: BoundPolicy<Native>) => bound.cost === cost
      const option = policies.find(isMeant)?.costOption ?? 'cost'
      const found = this.#ask(() => cost(native), option, isMeant)
      return andThen(found, (value) => validCost(value, option, report))
    })
  }

  #findLimits(
    policies: readonly BoundPolicy<Native>[],
    { native, request }: Asking<Native>,
  ): MaybePromise<readonly LimitInForce[]> {
    const { report } = this.#setup
    return inOrder<BoundPolicy<Native>, LimitInForce>(policies, (bound) => {
      const { policy, limitOf, enforce } = bound
      if (!limitOf && !enforce) return policy
      const isMeant = (other: BoundPolicy<Native>) => other === bound
      const found = limitOf && this.#ask(() => limitOf(native, report, request), 'limit', isMeant)
      return andThen(found, (value) => {
        const inForce: LimitInForce =
          value === undefined ? policy : validLimit(value, policy, report)
        // A kill switch has put the policy into shadow as a whole.
        if (!enforce || inForce.shadow !== undefined || policy.enforcedShare === 0) return inForce
        const { limit, reduced = false } = inForce
        const enforced = this.#ask(() => enforce(native), 'enforce', isMeant)
        return andThen(enforced, (answer) => {
          return { limit, reduced, shadow: !validEnforcement(answer, policy, report) }
        })
      })
    })
  }

  #key(resolver: KeyResolver<Native>, asking: Asking<Native>): MaybePromise<KeyOrMode> {
    const key = this.#ask(
      () => resolveKey(resolver, asking.native, asking.request),
      'key',
      (bound) => bound.key === resolver,
    )
    if (isPromise(key)) return key.then((known) => this.#orWithout(known, resolver, asking))
    return this.#orWithout(key, resolver, asking)
  }

  #orWithout(
    key: string | undefined,
    resolver: KeyResolver<Native>,
    asking: Asking<Native>,
  ): MaybePromise<KeyOrMode> {
    if (key === undefined) return this.#without(resolver, asking)
    if (this.#fruitless.size > 0) this.#fruitless.delete(resolver)
    return { key }
  }

  #warnIfFruitless(resolver: KeyResolver<Native>): void {
    const count = this.#fruitless.get(resolver)
    if (count === undefined) return
    this.#fruitless.set(resolver, count + 1)
    if (count + 1 < requestsWithoutKey) return
    this.#fruitless.delete(resolver)
    warnOnce(
      `a key function found no key for any of the first ${requestsWithoutKey} requests, so their addresses are counted (onMissingKey: 'ip'). If keys need ` +
        `authentication, have it run before the limiter: in Express app.use() it first; in Fastify set hook: 'preHandler', or put app.rateLimit(…) behind it ` +
        `on the route. If requests may come without a key, write firstOf(…, ip())`,
      'key that is always missing',
    )
  }

  /** An allowed address needs no key, a shadow refuses nothing, a preflight has no credentials. */
  #without(
    resolver: KeyResolver<Native>,
    { request, access }: Asking<Native>,
  ): MaybePromise<KeyOrMode> {
    const { onMissingKey, preflights } = this.#setup
    if (onMissingKey === 'ip') {
      if (!isPreflight(request)) this.#warnIfFruitless(resolver)
      return insteadOfKey(onMissingKey, request)
    }
    const isShadow = this.#shadowKeys.has(resolver)
    const isAllowed = onMissingKey === 'error' && access === 'allow'
    const isPassed = preflights === 'pass' && isPreflight(request)
    return insteadOfKey(isShadow || isAllowed || isPassed ? 'skip' : onMissingKey, request)
  }

  /** Asks a function of the user. Its errors name the option, its policies and their limiter. */
  #ask<Answer>(
    call: () => MaybePromise<Answer>,
    option: string,
    isMeant: (bound: BoundPolicy<Native>) => boolean,
  ): MaybePromise<Answer> {
    return locating(call, () => {
      const { policies, where } = this.#setup
      const names = policies.filter(isMeant).map(({ policy }) => `'${policy.name}'`)
      return `${option} of ${names.join(', ')} in ${where}`
    })
  }

  #keyOf({ key: resolver }: BoundPolicy<Native>, found: readonly KeyOrMode[]): string | undefined {
    const key = found[this.#keys.indexOf(resolver)]
    return typeof key === 'object' ? key.key : undefined
  }
}

/** The parts of checks that belong to one request. */
interface FoundParts {
  readonly keys: readonly KeyOrMode[]
  readonly costs: readonly number[]
  /** By policy. @default the policies' own */
  readonly limits?: readonly LimitInForce[]
  readonly place: Scope
}

function isFixed<Native>({ cost, limitOf, enforce }: BoundPolicy<Native>): boolean {
  return typeof cost === 'number' && limitOf === undefined && enforce === undefined
}
