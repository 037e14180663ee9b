import { invalid, isOptions, isSluiceError, SluiceError, warnOnce } from '@sluice/core'
import { evidenceOf } from '../keys/resolver.ts'
import type { BoundPolicy } from '../options/bound-policy.ts'
import type { PolicyGuardOptions, RouteOverride } from '../options/options.ts'
import type { Scope } from '../request/scope.ts'
import type { PolicyCatalogue } from '../routes/catalogue.ts'
import { wholeOverride } from '../routes/overrides.ts'
import type { GuardSetup, PolicyGuardPlace } from '../stages/setup.ts'
import { createPolicyGuard, type OpenGuard, type PolicyGuard } from '../stages/stages.ts'

/** The guard around routes, and its options. */
export interface ParentGuard<Native extends object, Handler> {
  readonly options: PolicyGuardOptions<Native, Handler>
  readonly catalogue: PolicyCatalogue<Native>
  readonly guard: OpenGuard<Native, Handler>
  /** The place of that guard; `undefined` where only each context tells. */
  readonly scope: Scope | undefined
  /** Returns whether it limits all other requests, so that an override can be added to it. */
  readonly isApplied: boolean
}

/**
 * Returns the function that makes the guards of routes which have limits of their own.
 * @throws SluiceError that names the place and the option that is wrong
 */
export function routeGuards<Native extends object, Handler>(
  parent: ParentGuard<Native, Handler>,
): (
  override: RouteOverride<Native, Handler> | string,
  place: Pick<PolicyGuardPlace<never>, 'where' | 'scope' | 'identifiedByScope'>,
) => PolicyGuard<Native, Handler> {
  const { options: around, catalogue, guard, scope, isApplied } = parent

  function addedTo(): readonly BoundPolicy<Native>[] {
    if (isApplied) {
      return guard.setup.quotas.map((bound) => ({ ...bound, scope: bound.scope ?? scope }))
    }
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `combine is 'add', but there are no policies for all requests that could be added to; leave combine out`,
    )
  }

  return (override, place) => {
    if (!isOptions(override) && typeof override !== 'string') {
      throw invalid({ option: place.where }, override, 'options, the name of a policy, or false')
    }
    try {
      const { options: whole, isAdded, shared } = wholeOverride(override, around, catalogue)
      // A client that is blocked is blocked on all routes that have no penalty of their own.
      const sharesPenalty = typeof override === 'string' || override.penalty === undefined
      const options = sharesPenalty ? { ...whole, penalty: false as const } : whole
      const penalty = sharesPenalty ? guard.setup.penalty : undefined
      if (options.store !== around.store && (isAdded || penalty)) throw otherStore(isAdded)
      const inherited = {
        addedTo: isAdded ? addedTo() : [],
        shared,
        penalty,
        delayQueue: options.maxWaiting === around.maxWaiting ? guard.delayQueue : undefined,
        shedder: options.shed === around.shed ? guard.shedder : undefined,
      }
      const checksAdmission = options.admission !== around.admission
      const made = createPolicyGuard(options, { ...place, checksAdmission, inherited })
      if (!isAdded && isApplied) warnIfUnbounded(guard.setup, made.setup, place.where)
      return made
    } catch (error) {
      if (!isSluiceError(error) || error.message.startsWith(place.where)) throw error
      throw new SluiceError(error.code, `${place.where}: ${error.message}`, { cause: error })
    }
  }
}

/** Warns of pairs in place of the address: nobody counts a client that varies the rest. */
function warnIfUnbounded<Native extends object>(
  around: GuardSetup<Native>,
  own: GuardSetup<Native>,
  where: string,
): void {
  const [before, now] = [around, own].map(({ quotas }) => quotas.map(({ key }) => evidenceOf(key)))
  if (!before?.includes('address') || !now?.every((evidence) => evidence === 'pair')) return
  warnOnce(
    `${where} counts the address together with another identity only, and replaces the limit of the address around it: a client that tries another ` +
      `account with each request is never limited. If both limits shall hold, write combine: 'add', or add a policy with key: ip()`,
    'pairs in place of addresses',
  )
}

/** In two stores one quota would be two, and a block would hold in one of them. */
function otherStore(isAdded: boolean): SluiceError {
  return new SluiceError(
    'SLUICE_OPTION_INVALID',
    isAdded
      ? `store: policies that are added to others are counted with them; leave store or combine out`
      : `store: the penalty around the route is in force in its own store alone; leave store out, or give the route a penalty of its own, or false`,
  )
}
