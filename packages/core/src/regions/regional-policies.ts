import { longestGrantMs } from '../algorithms/grant.ts'
import { algorithmOf } from '../algorithms/table.ts'
import type { Policy } from '../model/policy.ts'
import type { RegionBound } from '../model/region.ts'
import { SluiceError } from '../options/errors.ts'
import { besideGrants, shortestMs } from '../policy/ledger-options.ts'
import type { Shares } from './shares.ts'

/** The lifetime of a grant from the pool, unless the policy sets one. */
const usualGrantMs = 1_000

/**
 * Checks that a region's store can decide the policies of a limiter.
 * @throws SluiceError that names the policy and the fix
 */
export function checkPolicies(
  policies: readonly Policy[],
  { deadlineMs, globalDeadlineMs }: { deadlineMs: number; globalDeadlineMs: number },
): void {
  if (globalDeadlineMs >= deadlineMs) {
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      `deadlineMs (${deadlineMs}) must be more than the globalDeadlineMs of regionalStore (${globalDeadlineMs}), so that a request ` +
        'can outlast an unresponsive global store; raise deadlineMs, or lower globalDeadlineMs',
    )
  }
  for (const policy of policies) {
    const problem = problemOf(policy)
    if (problem === undefined) continue
    throw new SluiceError(
      'SLUICE_POLICY_COMBINATION',
      `policy '${policy.name}' cannot be used with regionalStore: ${problem}`,
    )
  }
}

function problemOf(policy: Policy): string | undefined {
  const { algorithm, reach, windowMs, countDenied } = policy
  const { counts } = algorithmOf(policy)
  if (counts === 'strikes' || (counts === 'leases' && reach === 'region')) return undefined
  if (counts === 'leases') return `'${algorithm}' is counted in each region; remove reach`
  if (countDenied) {
    return 'countDenied charges a policy in one step with the denial, which may be made elsewhere; use the option penalty'
  }
  if (reach === 'global') return undefined
  if (policy.maxUncounted > 0) {
    return "async charges one store, but a region has units of two; add reach: 'global', or remove async"
  }
  if (!besideGrants[algorithm]) {
    const names = Object.keys(besideGrants).join("', '")
    return `the limit of '${algorithm}' cannot be divided among regions, only that of '${names}'; add reach: 'global', or remove algorithm`
  }
  if (longestGrantMs(windowMs) >= shortestMs) return undefined
  return `a window of ${windowMs} ms is too short for borrowing, since a grant lasts a tenth of it, and at least ${shortestMs} ms; add reach: 'global', or give it a window of ${10 * shortestMs} ms or more`
}

/** Returns the policy for the global store: of the pool, if the limit is divided. */
export function centralPolicy(policy: Policy): Policy {
  // Without an answer, the limiter's failure mode decides.
  const own: Policy = { ...policy, failureMode: undefined }
  if (policy.reach === 'global') return own
  const prefetchMs = policy.prefetchMs || Math.min(usualGrantMs, longestGrantMs(policy.windowMs))
  const counting = besideGrants[policy.algorithm] ?? policy.counting
  return { ...own, id: `${policy.id}~pool`, counting, prefetchMs }
}

/**
 * Returns whether the regions divide a limit. Other limits with reach `region` apply fully in each.
 */
export function isDivided({ algorithm, reach }: Policy): boolean {
  return reach === 'region' && besideGrants[algorithm] !== undefined
}

export function boundsOf(policy: Policy, shares: Shares): readonly RegionBound[] {
  const { limit, reach } = policy
  if (!isDivided(policy)) return [{ part: reach, units: limit }]
  return [
    { part: 'share', units: shares.guaranteed(limit) },
    { part: 'pool', units: shares.pool(limit) },
  ]
}
