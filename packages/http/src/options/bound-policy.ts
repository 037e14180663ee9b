import {
  type Check,
  givenFields,
  isWholeNumber,
  knownFields,
  type MaybePromise,
  maxUnits,
  type Optional,
  type Policy,
  type PolicyOptions,
  policyFields,
  quote,
  unlimited,
  withoutHeadroom,
} from '@sluice/core'
import type { KeyResolver } from '../keys/resolver.ts'
import {
  checkDefault,
  checkLargest,
  declaredBy,
  type FoundLimit,
  finderOf,
  isPerRequest,
  type LimitFinder,
} from '../limits/source.ts'
import type { Scope } from '../request/scope.ts'
import type { PerRequest, Report } from '../request/user-functions.ts'
import { checkHttpOptions, SharedTable } from './option-table.ts'
import { type HttpPolicyFields, type HttpPolicyOptions, optionsOf } from './options.ts'
import { type PolicySettlement, settlementOf } from './settlement.ts'

/** A policy that is bound to requests: it knows how a request becomes a check of it. */
export interface BoundPolicy<Native> {
  readonly policy: Policy
  readonly key: KeyResolver<Native>
  readonly cost: PerRequest<Native, number>
  readonly costOption: 'cost' | 'reserve'
  readonly limitOf: LimitFinder<Native> | undefined
  readonly enforce: ((native: Native) => MaybePromise<boolean>) | undefined
  readonly settlement: PolicySettlement<Native> | undefined
  /** The place where a private policy counts apart; `undefined`: the place of the guard. */
  readonly scope: Scope | undefined
}

/** The limit of a request. */
export interface LimitInForce {
  /** `Infinity` for `unlimited`. */
  readonly limit: number
  /** Returns whether it is lower now than it would be in quiet times. @default false */
  readonly reduced?: boolean
  /** Returns whether the policy is in shadow for the request. @default as the policy says */
  readonly shadow?: boolean
}

/** A check of a request, and the policy that it comes from. */
export interface PolicyCheck<Native> extends Check, LimitInForce {
  readonly bound: BoundPolicy<Native>
  readonly scope: Scope
}

/** Returns whether a policy is in shadow for some requests at least. */
export function mayBeInShadow<Native>({ policy, enforce }: BoundPolicy<Native>): boolean {
  return policy.enforcedShare < 1 || enforce !== undefined
}

/** Checks what HTTP adds to the options of a policy; the rest is for core to check. */
export function checkPolicy<Native>(options: HttpPolicyOptions<Native>, where: string): void {
  knownFields(options, where || 'policy', optionsOf('policy'))
  const at = (field: string): string => (where ? `${where}.${field}` : field)
  checkHttpOptions(new SharedTable<Native>(), options, at)
  checkDefault(options.limit, options.defaultLimit, at('defaultLimit'))
}

/** The options of a policy as core takes them; the default limit stands for a function's. */
export function corePolicy<Native>(options: HttpPolicyOptions<Native>): PolicyOptions {
  const { key: _key, cost: _cost, defaultLimit = 0, enforce, reserve, ...rest } = options
  const { chargeWhen: _charge, refundWhen: _refund, ...others } = rest
  const limit = isPerRequest(rest.limit) ? (declaredBy(rest.limit) ?? defaultLimit) : rest.limit
  const core = { ...others, reserve: typeof reserve === 'function' || reserve }
  if (enforce === undefined) return { ...core, limit }
  // With a function it is for every request to say, and core has to know only of a mode that
  // contradicts it.
  return { ...core, limit, enforce: typeof enforce === 'function' ? { share: 1 } : enforce }
}

/** Joins a policy that core has checked with its HTTP options. */
export function bindPolicy<Native>(
  policy: Policy,
  { key, cost, reserve, limit, enforce, ...when }: Optional<HttpPolicyFields<Native>>,
  defaults: Pick<BoundPolicy<Native>, 'key' | 'cost' | 'settlement' | 'scope'>,
): BoundPolicy<Native> {
  checkLargest(limit, policy)
  const units = typeof reserve === 'function' ? reserve : undefined
  return {
    policy,
    key: key ?? defaults.key,
    cost: units ?? cost ?? defaults.cost,
    costOption: units ? 'reserve' : 'cost',
    limitOf: isPerRequest(limit) ? finderOf(limit) : undefined,
    enforce: typeof enforce === 'function' ? enforce : undefined,
    settlement: settlementOf(when) ?? defaults.settlement,
    scope: defaults.scope,
  }
}

/** The cost to ask for: 1 for all but whole numbers ≥ 0, so that they never open the gate. */
export function validCost(
  cost: unknown,
  option: BoundPolicy<never>['costOption'],
  report: Report,
): number {
  if (isWholeNumber(cost, { min: 0 })) return cost
  report(
    'SLUICE_COST_INVALID',
    option,
    `its function must yield a whole number ≥ 0, but yielded ${quote(cost)}; 1 stood in`,
  )
  return 1
}

/** The limit in force: `Infinity` for `unlimited`, the default if none or a wrong one is found. */
export function validLimit(found: FoundLimit, policy: Policy, report: Report): LimitInForce {
  const { limit: otherwise, headroom, name } = policy
  if (found === 'default') return { limit: otherwise }
  const { value, reduced, ...mode } = found
  if (value === unlimited) return { limit: Number.POSITIVE_INFINITY, reduced, ...mode }
  const max = maxUnits(policy)
  if (isWholeNumber(value, { min: 0, max }))
    return { limit: withoutHeadroom(value, headroom), reduced, ...mode }
  report(
    'SLUICE_LIMIT_INVALID',
    `limit of '${name}'`,
    `its function must yield a whole number from 0 to ${max}, or unlimited, but yielded ${quote(value)}; ` +
      `defaultLimit (${otherwise}) stood in`,
  )
  return { limit: otherwise }
}

/** Returns whether a policy is enforced for a request. Any other answer must not open the gate. */
export function validEnforcement(answer: unknown, { name }: Policy, report: Report): boolean {
  if (typeof answer === 'boolean') return answer
  report(
    'SLUICE_ANSWER_INVALID',
    `enforce of '${name}'`,
    `its function must answer true or false, but answered ${quote(answer)}; the policy was enforced`,
  )
  return true
}

/** Fields of the only policy, allowed at the top level; key and cost are options there anyway. */
export const shorthandFields: readonly string[] = [...policyFields, 'defaultLimit']

export function bringsPolicies(options: object): boolean {
  return givenFields(options, ['policies', ...shorthandFields]).length > 0
}
