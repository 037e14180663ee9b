import {
  countsRequests,
  effectiveResetMs,
  isViolated,
  type PolicyState,
  policyWaitMs,
  shownLimit,
  shownRemaining,
} from './policy-state.ts'

/** The one policy that the dialects before draft-8 have room for. */
export interface BindingPolicy {
  readonly name: string
  readonly state: PolicyState
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number | undefined
  readonly violated: boolean
  /** The wait (ms) of the request; only when violated, `Infinity` when no wait helps. */
  readonly waitMs: number | undefined
  /** Number of further requests of this cost that it would let pass. */
  readonly passes: number
}

/**
 * Returns the visible policy that will stop the client. Of policies that deny, it is the one with
 * the longest wait. Else it is the one that lets the fewest requests of this cost pass, then the
 * one that resets last, then the first.
 *
 * `undefined` if there is none, or if the policies that deny count another unit than requests:
 * numbers of a policy that lets the request pass would contradict the refusal.
 */
export function bindingPolicy(
  states: readonly PolicyState[],
  rejected: boolean,
): BindingPolicy | undefined {
  let binding: BindingPolicy | undefined
  let isDeniedByOther = false
  for (const state of states) {
    const candidate = candidateOf(state, rejected)
    if (candidate === undefined) {
      isDeniedByOther ||= isViolated(state, rejected) && isShownByUnit(state)
    } else if (binding === undefined || bindsBefore(candidate, binding)) binding = candidate
  }
  return isDeniedByOther && binding?.violated === false ? undefined : binding
}

function candidateOf(state: PolicyState, rejected: boolean): BindingPolicy | undefined {
  const limit = countsRequests(state) ? shownLimit(state) : undefined
  if (limit === undefined) return undefined
  const remaining = shownRemaining(state, limit)
  if (remaining === undefined) return undefined
  const violated = isViolated(state, rejected)
  return {
    name: state.name,
    state,
    limit,
    remaining,
    resetMs: effectiveResetMs(state, rejected),
    violated,
    waitMs: violated ? policyWaitMs(state) : undefined,
    passes: Math.floor(remaining / chargedCost(state)),
  }
}

/** Tells whether a policy is shown to clients, in another unit than requests. */
function isShownByUnit(state: PolicyState): boolean {
  return state.hidden !== true && !countsRequests(state)
}

/** A request of cost 0 is compared as one of cost 1: any number of them would fit. */
function chargedCost({ cost }: PolicyState): number {
  return cost !== undefined && cost >= 1 ? cost : 1
}

function bindsBefore(one: BindingPolicy, other: BindingPolicy): boolean {
  if (one.violated !== other.violated) return one.violated
  if (one.violated) return (one.waitMs ?? -1) > (other.waitMs ?? -1)
  if (one.passes !== other.passes) return one.passes < other.passes
  return (one.resetMs ?? -1) > (other.resetMs ?? -1)
}
