import {
  type AlgorithmName,
  givenFields,
  invalid,
  oneOf,
  orDefault,
  SluiceError,
} from '@sluice/core'
import { algorithms } from '@sluice/core/backend'
import { bringsPolicies, shorthandFields } from '../options/bound-policy.ts'
import { rivals } from '../options/option-table.ts'
import type { HttpPolicyOptions, PolicyGuardOptions, RouteOverride } from '../options/options.ts'
import { type PolicySettlement, settlementOf } from '../options/settlement.ts'
import { namedPolicies, type PolicyCatalogue } from './catalogue.ts'

export interface WholeOverride<Native, Handler> {
  readonly options: PolicyGuardOptions<Native, Handler>
  readonly isAdded: boolean
  /**
   * The refund conditions of policies that the route shares with others: the named policies that it
   * inherits or refers to.
   */
  readonly shared: ReadonlyMap<string, PolicySettlement<Native> | undefined>
}

/**
 * Fills an override with the surrounding options. If it has policies, it inherits no surrounding
 * policy.
 * @throws SluiceError if it names an unknown policy or adds nothing
 */
export function wholeOverride<Native, Handler>(
  override: RouteOverride<Native, Handler> | string,
  around: PolicyGuardOptions<Native, Handler>,
  catalogue: PolicyCatalogue<Native>,
): WholeOverride<Native, Handler> {
  if (typeof override === 'string')
    return wholeOverride({ policies: [override] }, around, catalogue)
  // An option that is `undefined` counts as missing.
  const written = only(override, (_field, value) => value !== undefined)
  const { combine, policies, ...own } = completed(written, around)
  const isAdded =
    oneOf(orDefault(combine, 'replace'), { option: 'combine' }, ['replace', 'add']) === 'add'
  const hasPolicies = policies !== undefined || bringsPolicies(own)
  if (isAdded && !hasPolicies) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `combine is 'add', but there is nothing to add: set limit and window, or policies`,
    )
  }
  const inherited = hasPolicies
    ? only(around, (field) => field !== 'policies' && !shorthandFields.includes(field))
    : around
  const options = { ...withoutRivals(inherited, own), ...own }
  if (policies !== undefined && !Array.isArray(policies)) {
    throw invalid({ option: 'policies' }, policies, 'an array of policies and names of policies')
  }
  const found = policies?.map((policy: HttpPolicyOptions<Native> | string, index) =>
    typeof policy === 'string' ? catalogue(policy, `policies[${index}]`) : policy,
  )
  const inheritedNames = hasPolicies ? [] : namedPolicies(around)
  const named = found?.filter((_, index) => typeof policies?.[index] === 'string') ?? inheritedNames
  const isAllShared = (found ?? around.policies ?? [around]).length === named.length
  const field = settlementOf(own)?.option
  // The route's own condition applies only to its own policies: a quota shared by several routes
  // has one rule everywhere.
  if (field && named.length > 0 && isAllShared) {
    const names = named.map(({ name = '' }) => name).join(', ')
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `${field} applies only to the route's own policies, but all of its policies are shared: ${names}; set ${field} on the policy itself, or give the route its own limit and window`,
    )
  }
  const otherwise = settlementOf(around)
  const shared = new Map(
    named.map((policy) => [policy.name ?? '', settlementOf(policy) ?? otherwise]),
  )
  return { options: found ? { ...options, policies: found } : options, isAdded, shared }
}

function only(options: object, keeps: (field: string, value: unknown) => boolean): object {
  return Object.fromEntries(Object.entries(options).filter(([field, value]) => keeps(field, value)))
}

const generalFields = ['limit', 'defaultLimit', 'window', 'headroom', 'hidden', 'mode', 'enforce']

/**
 * Fills the options that a single top-level policy omits from the only surrounding policy, except
 * the name. So `{ limit: 2 }` keeps the window. With both limit and window, it is a new policy.
 */
function completed<Native, Handler>(
  own: RouteOverride<Native, Handler>,
  around: PolicyGuardOptions<Native, Handler>,
): RouteOverride<Native, Handler> {
  const { policies, limit, window, algorithm } = own
  if (policies !== undefined || !bringsPolicies(own)) return own
  if (limit !== undefined && (window !== undefined || hasNoWindow(algorithm))) return own
  const others = around.policies ?? (bringsPolicies(around) ? [around] : [])
  const [other] = others
  if (!other) return own
  if (others.length > 1) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `${limit === undefined ? 'limit' : 'window'} is missing, and cannot be inherited, because there are ${others.length} surrounding policies; set limit and window`,
    )
  }
  const isOther = algorithm !== undefined && algorithm !== orDefault(other.algorithm, 'sliding-log')
  const taken = only(other, (field) => {
    if (field === 'name' || field === 'policies') return false
    if (field === 'defaultLimit' && limit !== undefined) return false
    if (field === 'window' && hasNoWindow(algorithm)) return false
    if (field === 'mode' || field === 'enforce') return !own.mode && !own.enforce
    return !isOther || !shorthandFields.includes(field) || generalFields.includes(field)
  })
  return { ...withoutRivals(taken, own), ...own }
}

/** Leases replace a window. */
function hasNoWindow(name: AlgorithmName | undefined): boolean {
  return name !== undefined && algorithms[name]?.counts === 'leases'
}

/** An option of an override also replaces its rival. */
function withoutRivals(around: object, own: object): object {
  const dropped: readonly string[] = rivals.flatMap(([one, other]) =>
    givenFields(own, [one, other]).length > 0 ? [one, other] : [],
  )
  return only(around, (field) => !dropped.includes(field))
}
