import {
  type BindingPolicy,
  bindingPolicy,
  countsRequests,
  type PolicyState,
  shownLimit,
  wholeSeconds,
} from '../values/policy-state.ts'
import type { DialectFormat, HeaderLine } from './dialect-format.ts'

/** Revisions 04 to 06: one policy, a field per number. */
export const draft6: DialectFormat = {
  name: 'draft-6',
  family: 'ietf',
  fieldNames: ['RateLimit-Limit', 'RateLimit-Policy', 'RateLimit-Remaining', 'RateLimit-Reset'],
  add: adding(({ limit, remaining }, reset) => [
    ['RateLimit-Limit', `${limit}`],
    ['RateLimit-Remaining', `${remaining}`],
    ['RateLimit-Reset', `${reset}`],
  ]),
}

/** Revision 07: one policy, as a dictionary. */
export const draft7: DialectFormat = {
  name: 'draft-7',
  family: 'ietf',
  fieldNames: ['RateLimit', 'RateLimit-Policy'],
  add: adding(({ limit, remaining }, reset) => [
    ['RateLimit', `limit=${limit}, remaining=${remaining}, reset=${reset}`],
  ]),
}

/** Both dialects forbid a limit without a reset. */
function adding(
  fieldsOf: (binding: BindingPolicy, reset: number) => readonly HeaderLine[],
): DialectFormat['add'] {
  return (lines, states, { rejected }) => {
    const binding = bindingPolicy(states, rejected)
    const reset = wholeSeconds(binding?.resetMs)
    if (binding === undefined || reset === undefined) return
    addIntegerPolicies(lines, states, binding)
    lines.push(...fieldsOf(binding, reset))
  }
}

/**
 * `RateLimit-Policy` before draft-8: integers with a required window, each number at most once. A
 * policy that does not fit is omitted. Of several policies with the same number, the binding one is
 * listed, since the other fields describe it; otherwise the first.
 */
function addIntegerPolicies(
  lines: HeaderLine[],
  states: readonly PolicyState[],
  binding: BindingPolicy,
): void {
  const windows = new Map<number, number>()
  for (const state of states) {
    const limit = countsRequests(state) ? shownLimit(state) : undefined
    const seconds = wholeSeconds(state.windowMs)
    if (limit === undefined || seconds === undefined) continue
    if (!windows.has(limit) || state === binding.state) windows.set(limit, seconds)
  }
  const policies = Array.from(windows, ([limit, seconds]) => `${limit};w=${seconds}`)
  if (policies.length > 0) lines.push(['RateLimit-Policy', policies.join(', ')])
}
