import type { Ask } from '@sluice/core'
import type { Plan, Plans } from '../scripts/plans.ts'

/** Requests that travel together. */
export interface CallPart {
  readonly asks: readonly Ask[]
  /** Of all of them; `undefined`: the general script decides them. */
  readonly plan: Plan | undefined
}

interface OpenPart extends CallPart {
  readonly asks: Ask[]
}

/**
 * Parts the requests of one moment into calls of one plan each. Requests that consume were asked at
 * the same time, so nobody can tell their order; whatever settles something keeps its place among
 * all others.
 */
export function splitByPlan(asks: readonly Ask[], plans: Plans): readonly CallPart[] {
  const parts: OpenPart[] = []
  /** Index of the first part that further `consume` requests may join. */
  let open = 0
  for (let i = 0; i < asks.length; i += 1) {
    const ask = asks[i]
    if (!ask) continue
    const consumes = ask.op === 'consume'
    const plan = consumes ? plans.planOf(ask.checks) : undefined
    const known = consumes ? partOf(parts, open, plan) : undefined
    if (known) known.asks.push(ask)
    else if (!consumes && parts.at(-1)?.plan === undefined && parts.length > 0) {
      parts.at(-1)?.asks.push(ask)
    } else parts.push({ asks: [ask], plan })
    if (!consumes) open = parts.length - 1
  }
  return parts
}

function partOf(
  parts: readonly OpenPart[],
  from: number,
  plan: Plan | undefined,
): OpenPart | undefined {
  for (let i = from; i < parts.length; i += 1) if (parts[i]?.plan === plan) return parts[i]
  return undefined
}
