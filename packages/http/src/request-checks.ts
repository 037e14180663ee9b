import { andThen, isPromise, type MaybePromise } from '@sluice/core'
import type { GuardSetup } from './guard-setup.ts'
import type { PerRequest } from './http-policy.ts'
import type { HttpRequest } from './http-request.ts'
import { inOrder } from './in-order.ts'
import { type KeyResolver, resolveKey } from './keys/key-resolver.ts'
import { insteadOfKey, type KeyOrMode } from './keys/missing-key.ts'
import { type Scope, scopedKey } from './routes/scope.ts'
import { type LimitInForce, legalCost, legalLimit, type Rule, type RuleCheck } from './rule.ts'

export interface Asking<Native> {
  readonly native: Native
  readonly request: HttpRequest
  readonly scope: Scope
}

/** Turns a request into checks: its keys first, then its costs, then its limits. What policies share is found once. */
export class RequestChecks<Native> {
  readonly #setup: GuardSetup<Native>
  readonly #keys: readonly KeyResolver<Native>[]
  readonly #costs: readonly PerRequest<Native, number>[]
  /** The one resolver of all policies, where nothing else depends on the request: as it nearly always is. */
  readonly #onlyKey: KeyResolver<Native> | undefined

  constructor(setup: GuardSetup<Native>) {
    this.#setup = setup
    this.#keys = [...new Set(setup.rules.map(({ key }) => key))]
    this.#costs = [...new Set(setup.rules.map(({ cost }) => cost))]
    this.#onlyKey =
      this.#keys.length === 1 && setup.rules.every(isFixed) ? this.#keys[0] : undefined
  }

  /** `deny`: the request cannot be counted, and is to be refused. No checks: there is nothing to count. */
  of(asking: Asking<Native>): MaybePromise<readonly RuleCheck<Native>[] | 'deny'> {
    if (this.#onlyKey) {
      const key = this.#key(this.#onlyKey, asking)
      if (!isPromise(key)) return this.#fixedChecks(key, asking.scope)
      return key.then((known) => this.#fixedChecks(known, asking.scope))
    }
    const keys = inOrder(this.#keys, (resolver) => this.#key(resolver, asking))
    return andThen(keys, (found) => {
      if (found.includes('deny')) return 'deny'
      const rules = this.#setup.rules.filter((rule) => this.#keyOf(rule, found) !== undefined)
      return rules.length === 0 ? [] : this.#checks(rules, found, asking)
    })
  }

  #fixedChecks(key: KeyOrMode, place: Scope): readonly RuleCheck<Native>[] | 'deny' {
    if (typeof key === 'string') return key === 'deny' ? key : []
    return this.#setup.rules.map((rule) => {
      const { policy, cost, scope = place } = rule
      return {
        policy,
        key: policy.named ? key.key : scopedKey(scope, key.key),
        cost: typeof cost === 'number' ? cost : 1,
        limit: policy.limit,
        rule,
        scope,
      }
    })
  }

  #checks(
    rules: readonly Rule<Native>[],
    keys: readonly KeyOrMode[],
    { native, scope: place }: Asking<Native>,
  ): MaybePromise<readonly RuleCheck<Native>[]> {
    const { report } = this.#setup
    const costs = inOrder(this.#costs, (cost) => {
      if (typeof cost !== 'function') return cost
      return andThen(cost(native), (value) => legalCost(value, report))
    })
    const limits = (): MaybePromise<readonly LimitInForce[]> =>
      inOrder<Rule<Native>, LimitInForce>(rules, ({ policy, limitOf }) => {
        if (!limitOf) return policy
        return andThen(limitOf(native, report), (found) => legalLimit(found, policy, report))
      })
    return andThen(costs, (foundCosts) =>
      andThen(limits(), (foundLimits) =>
        rules.map((rule, index) => {
          const { policy, cost, scope = place } = rule
          const key = this.#keyOf(rule, keys) ?? ''
          const { limit, reduced = false }: LimitInForce = foundLimits[index] ?? policy
          return {
            policy,
            key: policy.named ? key : scopedKey(scope, key),
            cost: foundCosts[this.#costs.indexOf(cost)] ?? 1,
            limit,
            rule,
            scope,
            reduced,
          }
        }),
      ),
    )
  }

  #key(
    resolver: KeyResolver<Native>,
    { native, request }: Asking<Native>,
  ): MaybePromise<KeyOrMode> {
    const key = resolveKey(resolver, native, request)
    return isPromise(key)
      ? key.then((known) => this.#orInstead(known, request))
      : this.#orInstead(key, request)
  }

  #orInstead(key: string | undefined, request: HttpRequest): MaybePromise<KeyOrMode> {
    return key === undefined ? insteadOfKey(this.#setup.onMissingKey, request) : { key }
  }

  #keyOf({ key: resolver }: Rule<Native>, found: readonly KeyOrMode[]): string | undefined {
    const key = found[this.#keys.indexOf(resolver)]
    return typeof key === 'object' ? key.key : undefined
  }
}

function isFixed<Native>({ cost, limitOf }: Rule<Native>): boolean {
  return typeof cost === 'number' && limitOf === undefined
}
