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
import type { Scope } from '../request/exchange.ts'
import type { PerRequest, Report } from '../request/user-functions.ts'
import { checkHttpOptions, SharedTable } from './option-table.ts'
import { type HttpPolicyFields, type HttpPolicyOptions, optionsOf } from './options.ts'
import { type PolicySettlement, settlementOf } from './settlement.ts'

/** A policy bound to requests: it knows how to make a check from a request. */
export interface BoundPolicy<Native> {
  readonly policy: Policy
  readonly key: KeyResolver<Native>
  readonly cost: PerRequest<Native, number>
  readonly costOption: 'cost' | 'reserve'
  readonly limitOf: LimitFinder<Native> | undefined
  readonly enforce: ((native: Native) => MaybePromise<boolean>) | undefined
  readonly settlement: PolicySettlement<Native> | undefined
  /** The place in which a private policy counts separately; `undefined` for the guard's place. */
  readonly scope: Scope | undefined
}

/** The limit of a request. */
export interface LimitInForce {
  /** `Infinity` for `unlimited`. */
  readonly limit: number
  /** True if it is lower now than in quiet times. @default false */
  readonly reduced?: boolean
  /** True if the policy is in shadow mode for the request. @default as in the policy */
  readonly shadow?: boolean
}

/** A check of a request, and its policy. */
export interface PolicyCheck<Native> extends Check, LimitInForce {
  readonly bound: BoundPolicy<Native>
  readonly scope: Scope
}

/** Returns whether a policy is in shadow mode for at least some requests. */
export function mayBeInShadow<Native>({ policy, enforce }: BoundPolicy<Native>): boolean {
  return policy.enforcedShare < 1 || enforce !== undefined
}

/** Checks the options that HTTP adds to a policy; core checks the rest. */
export function checkPolicy<Native>(options: HttpPolicyOptions<Native>, where: string): void {
  knownFields(options, where || 'policy', optionsOf('policy'))
  const at = (field: string): string => (where ? `${where}.${field}` : field)
  checkHttpOptions(new SharedTable<Native>(), options, at)
  checkDefault(options.limit, options.defaultLimit, at('defaultLimit'))
}

/** The options of a policy for core; the default limit replaces a limit function. */
export function corePolicy<Native>(options: HttpPolicyOptions<Native>): PolicyOptions {
  const { key: _key, cost: _cost, defaultLimit = 0, enforce, reserve, ...rest } = options
  const { chargeWhen: _charge, refundWhen: _refund, ...others } = rest
  const limit = isPerRequest(rest.limit) ? (declaredBy(rest.limit) ?? defaultLimit) : rest.limit
  const core = { ...others, reserve: typeof reserve === 'function' || reserve }
  if (enforce === undefined) return { ...core, limit }
  // With a function, each request decides, and core only needs to know a mode that contradicts it.
  return { ...core, limit, enforce: typeof enforce === 'function' ? { share: 1 } : enforce }
}

/** Joins a policy checked by core with its HTTP options. */
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

/** Returns the cost to check: 1 instead of an invalid one, so that mistakes bypass no limit. */
export function validCost(
  cost: unknown,
  option: BoundPolicy<never>['costOption'],
  report: Report,
): number {
  if (isWholeNumber(cost, { min: 0 })) return cost
  report(
    'SLUICE_COST_INVALID',
    option,
    `its function must return a whole number ≥ 0, but returned ${quote(cost)}; 1 was used`,
  )
  return 1
}

/** Returns the effective limit: `Infinity` for `unlimited`, the default for an invalid one. */
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
    `its function must return a whole number from 0 to ${max}, or unlimited, but returned ${quote(value)}; ` +
      `defaultLimit (${otherwise}) was used`,
  )
  return { limit: otherwise }
}

/** Returns whether a policy is enforced for a request. An invalid result counts as true. */
export function validEnforcement(answer: unknown, { name }: Policy, report: Report): boolean {
  if (typeof answer === 'boolean') return answer
  report(
    'SLUICE_ANSWER_INVALID',
    `enforce of '${name}'`,
    `its function must return true or false, but returned ${quote(answer)}; the policy was enforced`,
  )
  return true
}

/** Fields of a single policy, allowed at the top level; key and cost are options there anyway. */
export const shorthandFields: readonly string[] = [...policyFields, 'defaultLimit']

export function bringsPolicies(options: object): boolean {
  return givenFields(options, ['policies', ...shorthandFields]).length > 0
}
