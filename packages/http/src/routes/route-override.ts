import { given, invalid, oneOf, SluiceError, type Without } from '@sluice/core'
import type { HttpPolicyFields, HttpPolicyOptions, LimitForm, Shorthand } from '../http-policy.ts'
import type { PolicyGuardOptions, PolicyGuardSettings } from '../policy-guard-options.ts'
import type { PolicyCatalogue } from './policy-catalogue.ts'
import { bringsPolicies, shorthandFields } from './shorthand-fields.ts'

interface RouteSettings<Native, Handler> extends PolicyGuardSettings<Native, Handler> {
  /**
   * Whether the policies given here take the place of those around it, or are decided together with them, all or nothing.
   * @default 'replace'
   */
  combine?: 'replace' | 'add'
}

/** The fields of one policy, as far as they are not as around the route. */
type RoutePolicy<Native> = Without<'policies'> &
  Partial<Omit<HttpPolicyFields<Native>, keyof LimitForm<Native>>> &
  (LimitForm<Native> | Without<'limit'>)

/**
 * The limits of one route. What it leaves out is as in the options around it. A policy may be given by the name that it has there: it
 * is then one quota, wherever it is named.
 */
export type RouteOverride<Native, Handler = never> = RouteSettings<Native, Handler> &
  (
    | RoutePolicy<Native>
    | ({ policies: readonly (HttpPolicyOptions<Native> | string)[] } & Without<Shorthand>)
  )

/** An override made whole. */
export interface WholeOverride<Native, Handler> {
  readonly options: PolicyGuardOptions<Native, Handler>
  readonly isAdded: boolean
}

/**
 * Fills an override with the options around it. Where it brings policies, none of those around it are taken over.
 * @throws SluiceError when it names a policy that is unknown, or adds nothing
 */
export function wholeOverride<Native, Handler>(
  override: RouteOverride<Native, Handler> | string,
  around: PolicyGuardOptions<Native, Handler>,
  catalogue: PolicyCatalogue<Native>,
): WholeOverride<Native, Handler> {
  if (typeof override === 'string')
    return wholeOverride({ policies: [override] }, around, catalogue)
  const { combine, policies, ...own } = override
  const isAdded =
    oneOf(given(combine, 'replace'), { option: 'combine' }, ['replace', 'add']) === 'add'
  const hasPolicies = policies !== undefined || bringsPolicies(own)
  if (isAdded && !hasPolicies) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `combine is 'add', but there is nothing to add: give limit and window, or policies`,
    )
  }
  const inherited = hasPolicies ? withoutPolicies(around) : around
  const options = { ...withoutRival(inherited, own), ...own }
  if (policies === undefined) return { options, isAdded }
  if (!Array.isArray(policies)) {
    throw invalid({ option: 'policies' }, policies, 'an array of policies and names of policies')
  }
  const found = policies.map((policy: HttpPolicyOptions<Native> | string, index) =>
    typeof policy === 'string' ? catalogue.find(policy, `policies[${index}]`) : policy,
  )
  return { options: { ...options, policies: found }, isAdded }
}

/** Of `chargeWhen` and `refundWhen` one can be said at most: what an override says takes the place of the other. */
function withoutRival<Native, Handler>(
  { chargeWhen, refundWhen, ...others }: PolicyGuardOptions<Native, Handler>,
  own: Pick<PolicyGuardOptions<Native, Handler>, 'chargeWhen' | 'refundWhen'>,
): PolicyGuardOptions<Native, Handler> {
  if (own.chargeWhen || own.refundWhen) return others
  if (chargeWhen) return { ...others, chargeWhen }
  return refundWhen ? { ...others, refundWhen } : others
}

function withoutPolicies<Native, Handler>(
  options: PolicyGuardOptions<Native, Handler>,
): PolicyGuardOptions<Native, Handler> {
  const others = Object.entries(options).filter(
    ([field]) => field !== 'policies' && !shorthandFields.includes(field),
  )
  return Object.fromEntries(others)
}
