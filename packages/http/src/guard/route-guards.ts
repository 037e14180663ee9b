import { invalid, isOptions, isSluiceError, SluiceError, warnOnce } from '@sluice/core'
import { evidenceOf } from '../keys/resolver.ts'
import type { BoundPolicy } from '../options/bound-policy.ts'
import type { PolicyGuardOptions, RouteOverride } from '../options/options.ts'
import type { Scope } from '../request/exchange.ts'
import type { PolicyCatalogue } from '../routes/catalogue.ts'
import { wholeOverride } from '../routes/overrides.ts'
import type { GuardSetup, PolicyGuardPlace } from '../stages/setup.ts'
import { createPolicyGuard, type OpenGuard, type PolicyGuard } from '../stages/stages.ts'

/** The guard around the routes, and its options. */
export interface ParentGuard<Native extends object, Handler> {
  readonly options: PolicyGuardOptions<Native, Handler>
  readonly catalogue: PolicyCatalogue<Native>
  readonly guard: OpenGuard<Native, Handler>
  /** The place of that guard; `undefined` if only the context knows. */
  readonly scope: Scope | undefined
  /** True if it limits all other requests, so that an override can be added to it. */
  readonly isApplied: boolean
}

interface RoutePlace
  extends Pick<PolicyGuardPlace<never>, 'where' | 'scope' | 'identifiedByScope'> {
  /** True if the guard around the routes decides the same requests. @default false */
  readonly isBeside?: boolean
}

/**
 * Returns the function that creates the guards of routes with their own limits.
 * @throws SluiceError that names the place and the wrong option
 */
export function routeGuards<Native extends object, Handler>(
  parent: ParentGuard<Native, Handler>,
): (
  override: RouteOverride<Native, Handler> | string,
  place: RoutePlace,
) => PolicyGuard<Native, Handler> {
  const { options: around, catalogue, guard, scope, isApplied } = parent

  function addedTo(): readonly BoundPolicy<Native>[] {
    if (isApplied) {
      return guard.setup.quotas.map((bound) => ({ ...bound, scope: bound.scope ?? scope }))
    }
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `combine is 'add', but there are no policies for all requests to add to; remove combine`,
    )
  }

  return (override, { isBeside = false, ...place }) => {
    if (!isOptions(override) && typeof override !== 'string') {
      throw invalid({ option: place.where }, override, 'options, the name of a policy, or false')
    }
    try {
      const { options: whole, isAdded, shared } = wholeOverride(override, around, catalogue)
      // A blocked client is blocked on all routes without their own penalty.
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
      if (!isAdded && isApplied && !isBeside) warnIfUnbounded(guard.setup, made.setup, place.where)
      return made
    } catch (error) {
      if (!isSluiceError(error) || error.message.startsWith(place.where)) throw error
      throw new SluiceError(error.code, `${place.where}: ${error.message}`, { cause: error })
    }
  }
}

/** Warns about pairs that replace the address: a client that varies the rest is never limited. */
function warnIfUnbounded<Native extends object>(
  around: GuardSetup<Native>,
  own: GuardSetup<Native>,
  where: string,
): void {
  const [before, now] = [around, own].map(({ quotas }) => quotas.map(({ key }) => evidenceOf(key)))
  if (!before?.includes('address') || !now?.every((evidence) => evidence === 'pair')) return
  warnOnce(
    `${where} counts the address only together with another identity, and replaces the surrounding limit by address: a client that tries another ` +
      `account with each request is never limited. To enforce both limits, write combine: 'add', or add a policy with key: ip()`,
    'pairs instead of addresses',
  )
}

/** In two stores a quota would be counted twice, and a block would apply in only one. */
function otherStore(isAdded: boolean): SluiceError {
  return new SluiceError(
    'SLUICE_OPTION_INVALID',
    isAdded
      ? `store: added policies are counted in the same store as the others; remove store or combine`
      : `store: the surrounding penalty works only in its own store; remove store, or give the route its own penalty, or penalty: false`,
  )
}
