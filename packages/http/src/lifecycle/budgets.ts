import {
  type CheckLimiter,
  type Decision,
  quote,
  type Reservation,
  SluiceError,
} from '@sluice/core'
import type { BoundPolicy, PolicyCheck } from '../options/bound-policy.ts'
import type { RequestContext } from '../request/context.ts'
import type { Hold } from '../request/hold.ts'

/** The budgets of one request, settled when its response is over. */
export class Budgets implements Hold {
  readonly #byPolicy: ReadonlyMap<string, Reservation>

  constructor(byPolicy: ReadonlyMap<string, Reservation>) {
    this.#byPolicy = byPolicy
  }

  /** @throws SluiceError when there is no such budget, or none is named of several */
  of(policy: string | undefined): Reservation {
    const names = [...this.#byPolicy.keys()]
    const isOne = this.#all.size === 1
    const found = this.#byPolicy.get(policy ?? (isOne ? (names[0] ?? '') : ''))
    if (found) return found
    const asked = policy === undefined ? 'no policy, of several budgets' : quote(policy)
    throw new SluiceError(
      'SLUICE_POLICY_UNKNOWN',
      `spend() or budget() names ${asked}; the policies with reserve are ${names.join(', ')}`,
    )
  }

  finish(): unknown {
    return Promise.all([...this.#all].map((budget) => budget.settle()))
  }

  /** The signals abort too, so that work for a client that has left can stop. */
  abort(): unknown {
    return Promise.all([...this.#all].map((budget) => budget.cancel()))
  }

  get #all(): ReadonlySet<Reservation> {
    return new Set(this.#byPolicy.values())
  }
}

type Decider<Native extends object> = (
  context: RequestContext<Native>,
  checks: readonly PolicyCheck<Native>[],
) => Promise<{
  readonly context: RequestContext<Native>
  readonly decision: Decision
  readonly checks: readonly PolicyCheck<Native>[]
  readonly budgets: Budgets
}>

/**
 * Returns the function that decides requests of policies with `reserve`; `undefined` without such
 * policies. Policies whose units come from one function, or are one number, have one budget.
 */
export function reserving<Native extends object>(
  limiter: CheckLimiter,
  policies: readonly BoundPolicy<Native>[],
): Decider<Native> | undefined {
  const reserved = policies.filter(({ policy }) => policy.reserveMs > 0)
  if (reserved.length === 0) return undefined
  const sources = [...new Set(reserved.map(({ cost }) => cost))]
  return async (context, checks) => {
    const { decision, budget } = await limiter.reserveChecks(checks)
    const budgets = new Map<string, Reservation>()
    for (const source of sources) {
      const own = checks.filter(({ bound }) => bound.cost === source)
      const one = budget(own, { units: own[0]?.cost ?? 0 })
      for (const { cost, policy } of reserved) if (cost === source) budgets.set(policy.name, one)
    }
    return { context, decision, checks, budgets: new Budgets(budgets) }
  }
}
