import { type PolicyState, shownLimit, shownRemaining } from '../policy-state.ts'

/**
 * Whether another policy of the same name is listed instead: limiters in one chain may share a name, and a list with two
 * items of it would contradict itself. The lower remaining is the one that stops the client; of equals, the first.
 */
export function isEclipsed(
  state: PolicyState,
  index: number,
  states: readonly PolicyState[],
): boolean {
  return states.some((other, otherIndex) => {
    if (otherIndex === index || other.name !== state.name) return false
    if (shownLimit(other) === undefined) return false
    const difference = unitsLeft(other) - unitsLeft(state)
    return difference < 0 || (difference === 0 && otherIndex < index)
  })
}

/** Unknown counts as plenty: a policy that can tell is worth more than one that cannot. */
function unitsLeft(state: PolicyState): number {
  return shownRemaining(state, shownLimit(state) ?? 0) ?? Number.MAX_VALUE
}
