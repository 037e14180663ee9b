import type { QueuedRequest } from '../model/queued-request.ts'
import type { Plan, Plans } from '../scripts/plans.ts'

/** Requests of one call. */
export interface CallPart {
  readonly asks: readonly QueuedRequest[]
  /** `undefined`: the general script decides them. */
  readonly plan: Plan | undefined
}

interface OpenPart extends CallPart {
  readonly asks: QueuedRequest[]
  settles: boolean
}

/**
 * Parts the requests of one moment into calls of one plan each. Nobody can tell the order of
 * requests that consume; all other operations keep their place among those of their policies.
 */
export function splitByPlan(asks: readonly QueuedRequest[], plans: Plans): readonly CallPart[] {
  const parts: OpenPart[] = []
  for (let i = 0; i < asks.length; i += 1) {
    const ask = asks[i]
    if (!ask) continue
    const settles = ask.op !== 'consume'
    const plan = plans.planOf(ask)
    const part = ask.control ? undefined : partFor(parts, plan, settles)
    if (!part) parts.push({ asks: [ask], plan, settles })
    else {
      part.asks.push(ask)
      part.settles ||= settles
    }
  }
  return parts
}

function partFor(
  parts: readonly OpenPart[],
  plan: Plan | undefined,
  settles: boolean,
): OpenPart | undefined {
  for (let i = parts.length - 1; i >= 0; i -= 1) {
    const part = parts[i]
    // A change by hand has a deadline, and so a call, of its own.
    if (!part || (part.plan === plan && !part.asks[0]?.control)) return part
    if ((settles || part.settles) && meets(part.plan, plan)) return undefined
  }
  return undefined
}

/** Tells whether two calls may ask for the same keys. */
function meets(one: Plan | undefined, other: Plan | undefined): boolean {
  if (!one || !other) return true
  return one.policies.some(({ id }) => other.policies.some((policy) => policy.id === id))
}
