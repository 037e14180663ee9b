import { type CheckLimiter, quote, type Reservation, SluiceError } from '@sluice/core'
import type { BoundPolicy } from '../options/bound-policy.ts'
import type { Decide, RequestBudgets } from './found.ts'

function budgetsOf(byPolicy: ReadonlyMap<string, Reservation>): RequestBudgets {
  const names = [...byPolicy.keys()]
  const all = [...new Set(byPolicy.values())]
  return {
    of(policy) {
      const found = byPolicy.get(policy ?? (all.length === 1 ? (names[0] ?? '') : ''))
      if (found) return found
      const asked =
        policy === undefined ? 'no policy, but there are several budgets' : quote(policy)
      throw new SluiceError(
        'SLUICE_POLICY_UNKNOWN',
        `spend() or budget() names ${asked}; the policies with reserve are ${names.join(', ')}`,
      )
    },
    finish: () => Promise.all(all.map((budget) => budget.settle())),
    // The signals abort too, so that work for a disconnected client can stop.
    abort: () => Promise.all(all.map((budget) => budget.cancel())),
  }
}

/**
 * Returns the function that decides requests with `reserve` policies; `undefined` if there are
 * none. Policies whose units come from the same function, or are the same number, share a budget.
 */
export function reserving<Native extends object>(
  limiter: CheckLimiter,
  policies: readonly BoundPolicy<Native>[],
): Decide<Native> | undefined {
  const reserved = policies.filter(({ policy }) => policy.reserveMs > 0)
  if (reserved.length === 0) return undefined
  const sources = [...new Set(reserved.map(({ cost }) => cost))]
  return async (context, checks, timing) => {
    const { decision, budget } = await limiter.reserveChecks(checks)
    const budgets = new Map<string, Reservation>()
    for (const source of sources) {
      const own = checks.filter(({ bound }) => bound.cost === source)
      const one = budget(own, { units: own[0]?.cost ?? 0 })
      for (const { cost, policy } of reserved) if (cost === source) budgets.set(policy.name, one)
    }
    return { context, decision, checks, timing, budgets: budgetsOf(budgets) }
  }
}
