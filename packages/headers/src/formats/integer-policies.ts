import type { BindingPolicy } from '../values/binding-policy.ts'
import {
  countsRequests,
  type PolicyState,
  shownLimit,
  wholeSeconds,
} from '../values/policy-state.ts'
import type { HeaderLine } from './dialect-format.ts'

/**
 * `RateLimit-Policy` before draft-8: integers, where the window is required and no number may occur
 * twice. A policy that does not fit is left out. Of several policies with one number, the binding
 * one is listed, since the other fields describe it; without it, the first.
 */
export function addIntegerPolicies(
  lines: HeaderLine[],
  states: readonly PolicyState[],
  binding: BindingPolicy,
): void {
  const limits: number[] = []
  let policies = ''
  for (const state of states) {
    const limit = integerLimit(state)
    if (limit === undefined || limits.includes(limit)) continue
    limits.push(limit)
    const listed = limit === integerLimit(binding.state) ? binding.state : state
    policies += `${policies === '' ? '' : ', '}${limit};w=${wholeSeconds(listed.windowMs)}`
  }
  if (policies !== '') lines.push(['RateLimit-Policy', policies])
}

/** Returns the number under which a policy can be listed. */
function integerLimit(state: PolicyState): number | undefined {
  const hasWindow = countsRequests(state) && wholeSeconds(state.windowMs) !== undefined
  return hasWindow ? shownLimit(state) : undefined
}
