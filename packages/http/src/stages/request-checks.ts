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
import { withStrikesLater } from '../options/penalty.ts'
import type { RequestContext } from '../request/context.ts'
import { isPreflight, type Scope, scopedKey } from '../request/exchange.ts'
import { caught, inOrder, located, type PerRequest } from '../request/user-functions.ts'
import type { GuardSetup } from './setup.ts'

export interface Asking<Native>
  extends Pick<RequestContext<Native>, 'native' | 'request' | 'scope'> {
  /** Result of the lists for its address. @default 'unlisted' */
  readonly access?: Access
}

/**
 * The checks of a request. `deny`: the request has no key and must be refused. `block` and `allow`:
 * decided by a list. An empty list: the request has no key and passes uncounted.
 */
export type FoundChecks<Native extends object> =
  | readonly PolicyCheck<Native>[]
  | 'deny'
  | 'block'
  | 'allow'

/** Number of requests without a key, and none with one, that cannot be a coincidence. */
const requestsWithoutKey = 3

/**
 * Returns a function that finds the checks of a request, or why it has none. Keys, costs and limits
 * that policies share are computed once.
 */
export function requestChecks<Native extends object>(
  setup: GuardSetup<Native>,
): (context: Asking<Native>, access?: Access) => MaybePromise<FoundChecks<Native>> {
  const { lists, onMissingKey, penalty, policies: all, preflights, report, strikesLater } = setup
  const keys: readonly KeyResolver<Native>[] = [...new Set(all.map(({ key }) => key))]
  const costs: readonly PerRequest<Native, number>[] = [...new Set(all.map(({ cost }) => cost))]
  /** The policies, and the places of their keys and costs among those of a request. */
  const asked: readonly Asked<Native>[] = all.map((bound) => {
    return { bound, keyAt: keys.indexOf(bound.key), costAt: costs.indexOf(bound.cost) }
  })
  const numbers = costs.filter((cost) => typeof cost === 'number')
  /** The costs, if only the key depends on the request, as is usual. */
  const fixedCosts = all.every(isFixed) ? numbers : undefined
  /** Keys needed only by shadow policies: a missing one refuses no request. */
  const shadowKeys: ReadonlySet<KeyResolver<Native>> = new Set(
    keys.filter((key) => all.every((bound) => bound.key !== key || mayBeInShadow(bound))),
  )
  /** Resolvers that have never found a key, with the number of requests so far. */
  const fruitless = new Map(keys.map((key) => [key, 0]))

  function keyed(found: readonly KeyOrMode[], asking: Asking<Native>): MaybeChecks<Native> {
    const { access = 'unlisted', native, scope: place } = asking
    const listed = lists ? lists.ofKeys(found, access) : access
    if (listed !== 'unlisted') return listed
    if (found.some((one) => one === 'deny')) return 'deny'
    const policies = found.some((one) => one === 'skip')
      ? asked.filter(({ keyAt }) => found[keyAt] !== 'skip')
      : asked
    if (policies.length === 0) return []
    if (fixedCosts) return checksOf(policies, { keys: found, costs: fixedCosts, place })
    return andThen(findCosts(native), (known) =>
      andThen(findLimits(policies, asking), (limits) =>
        checksOf(policies, { keys: found, costs: known, limits, place }),
      ),
    )
  }

  function checksOf(
    policies: readonly Asked<Native>[],
    found: FoundParts,
  ): readonly PolicyCheck<Native>[] {
    const checks = policies.map(({ bound, keyAt, costAt }, index) => {
      const { policy, scope = found.place } = bound
      const known = found.keys[keyAt]
      const identity = typeof known === 'object' ? known.key : ''
      const cost = found.costs[costAt] ?? 1
      const key = policy.named ? identity : scopedKey(scope, identity)
      const { limit, reduced = false, shadow }: LimitInForce = found.limits?.[index] ?? policy
      const check = { policy, key, identity, cost, limit, bound, scope, reduced }
      return shadow === undefined ? check : { ...check, shadow }
    })
    // A denial by a reduced limit is not the client's fault.
    const isLater = strikesLater || (penalty && checks.some(({ reduced }) => reduced))
    return isLater ? withStrikesLater(checks) : checks
  }

  function findCosts(native: Native): MaybePromise<readonly number[]> {
    return inOrder(costs, (cost) => {
      if (typeof cost !== 'function') return cost
      const option = all.find((bound) => bound.cost === cost)?.costOption ?? 'cost'
      const found = ask(() => cost(native), option, cost)
      return andThen(found, (value) => validCost(value, option, report))
    })
  }

  function findLimits(
    policies: readonly Asked<Native>[],
    { native, request }: Asking<Native>,
  ): MaybePromise<readonly LimitInForce[]> {
    return inOrder<Asked<Native>, LimitInForce>(policies, ({ bound }) => {
      const { policy, limitOf } = bound
      if (!limitOf) return enforced(bound, policy, native)
      const found = ask(() => limitOf(native, report, request), 'limit', bound)
      return andThen(found, (value) => enforced(bound, validLimit(value, policy, report), native))
    })
  }

  function enforced(
    bound: BoundPolicy<Native>,
    inForce: LimitInForce,
    native: Native,
  ): MaybePromise<LimitInForce> {
    const { enforce, policy } = bound
    // A kill switch has put the whole policy into shadow mode.
    if (!enforce || inForce.shadow !== undefined || policy.enforcedShare === 0) return inForce
    const { limit, reduced = false } = inForce
    const found = ask(() => enforce(native), 'enforce', bound)
    return andThen(found, (answer) => {
      return { limit, reduced, shadow: !validEnforcement(answer, policy, report) }
    })
  }

  function findKey(resolver: KeyResolver<Native>, asking: Asking<Native>): MaybePromise<KeyOrMode> {
    const { native, request } = asking
    const key = ask(() => resolveKey(resolver, native, request), 'key', resolver)
    if (isPromise(key)) return key.then((known) => orWithout(known, resolver, asking))
    return orWithout(key, resolver, asking)
  }

  /** Allowed addresses need no key, shadow policies refuse nothing, preflights lack credentials. */
  function orWithout(
    key: string | undefined,
    resolver: KeyResolver<Native>,
    { request, access }: Asking<Native>,
  ): MaybePromise<KeyOrMode> {
    if (key !== undefined) {
      if (fruitless.size > 0) fruitless.delete(resolver)
      return { key }
    }
    if (onMissingKey === 'ip') {
      if (!isPreflight(request)) warnIfFruitless(resolver)
      return insteadOfKey(onMissingKey, request)
    }
    const isAllowed = onMissingKey === 'error' && access === 'allow'
    const isPassed = preflights === 'pass' && isPreflight(request)
    const isSpared = shadowKeys.has(resolver) || isAllowed || isPassed
    return insteadOfKey(isSpared ? 'skip' : onMissingKey, request)
  }

  function warnIfFruitless(resolver: KeyResolver<Native>): void {
    const count = fruitless.get(resolver)
    if (count === undefined) return
    fruitless.set(resolver, count + 1)
    if (count + 1 < requestsWithoutKey) return
    fruitless.delete(resolver)
    warnOnce(
      `a key function returned no key for any of the first ${requestsWithoutKey} requests, so their addresses are counted (onMissingKey: 'ip'). If keys need ` +
        `authentication or a parsed body, run that before the limiter: in Express, app.use() it first; in Fastify, set hook: 'preHandler', or put app.rateLimit(…) after it ` +
        `on the route. If requests may have no key, write firstOf(…, ip())`,
      'key that is always missing',
    )
  }

  /** Calls a user function. Errors name its option, its policies and their limiter. */
  function ask<Answer>(
    call: () => MaybePromise<Answer>,
    option: string,
    owner: object,
  ): MaybePromise<Answer> {
    return caught(call, (error) => {
      const policies = all.filter(
        (bound) => bound === owner || bound.key === owner || bound.cost === owner,
      )
      const names = policies.map(({ policy }) => `'${policy.name}'`).join(', ')
      throw located(error, `${option} of ${names} in ${setup.where}`)
    })
  }

  return (context, access = 'unlisted') => {
    const { native, request, scope } = context
    const asking = access === 'unlisted' ? context : { native, request, scope, access }
    const [only] = keys
    if (!only || keys.length > 1) {
      const found = inOrder(keys, (resolver) => findKey(resolver, asking))
      return andThen(found, (known) => keyed(known, asking))
    }
    const key = findKey(only, asking)
    if (!isPromise(key)) return keyed([key], asking)
    return key.then((known) => keyed([known], asking))
  }
}

type MaybeChecks<Native extends object> = MaybePromise<FoundChecks<Native>>

type Asked<Native> = Readonly<{ bound: BoundPolicy<Native>; keyAt: number; costAt: number }>

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
