import type { ParsedPolicy } from './parsed-rate-limit.ts'

/**
 * Joins each policy in `RateLimit-Policy` with its state in `RateLimit` by name. If two limiters
 * sent the same name, they wrote both fields in the same order, so the first belongs to the first.
 */
export function joinByName(
  policies: readonly ParsedPolicy[],
  states: readonly ParsedPolicy[],
): ParsedPolicy[] {
  const waiting = statesByName(states)
  const joined = policies.map((policy) => {
    const state = waiting.get(policy.name)?.shift()
    return state === undefined
      ? policy
      : { ...policy, ...stateFields(state), pk: policy.pk ?? state.pk }
  })
  return [...joined, ...[...waiting.values()].flat()]
}

/**
 * Joins the single state of the older dialects with the policy that has the same limit and the
 * window.
 */
export function joinByLimit(
  policies: readonly ParsedPolicy[],
  state: ParsedPolicy | undefined,
): ParsedPolicy[] {
  if (state === undefined) return [...policies]
  const index = policies.findIndex(({ limit }) => limit === state.limit)
  if (index === -1) return [state, ...policies]
  return policies.map((policy, at) =>
    at === index ? { ...policy, ...stateFields(state) } : policy,
  )
}

function statesByName(states: readonly ParsedPolicy[]): Map<string | undefined, ParsedPolicy[]> {
  const byName = new Map<string | undefined, ParsedPolicy[]>()
  for (const state of states) {
    const sameName = byName.get(state.name)
    if (sameName === undefined) byName.set(state.name, [state])
    else sameName.push(state)
  }
  return byName
}

function stateFields({
  remaining,
  resetMs,
  cost,
}: ParsedPolicy): Pick<ParsedPolicy, 'remaining' | 'resetMs' | 'cost'> {
  return { remaining, resetMs, cost }
}
