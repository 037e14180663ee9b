import { durationMs } from '@sluice/core'
import {
  type PolicyEdit,
  type PolicyEntry,
  type PolicyFile,
  placedPolicies,
} from '@sluice/policies'
import type { Admin } from './context.ts'
import { type Taken, takenUnder } from './near.ts'

interface Changed {
  readonly before: PolicyFile
  readonly after: PolicyFile
  readonly edit: PolicyEdit
}

/** Estimates which of the busiest identities a change newly denies or admits. */
export function affectedBy({ metrics }: Admin, { before, after, edit }: Changed): object {
  const unknown = (why: string) => ({ known: false, why, policies: [] })
  if (!metrics) return unknown('There are no metrics: createAdmin({ metrics }).')
  if (edit.kill !== undefined) return unknown('The kill switch affects every identity.')
  if (JSON.stringify(before.overrides ?? []) !== JSON.stringify(after.overrides ?? []))
    return unknown('An override affects only the identities of its key.')
  const old = new Map(placedPolicies(before).map(({ policy }) => [policy.name, policy]))
  const unclear: string[] = []
  const found = placedPolicies(after).flatMap(({ policy }) => {
    const from = old.get(policy.name)
    if (!from || sameBounds(from, policy)) return []
    const bounds = [boundOf(from), boundOf(policy)] as const
    const { window } = policy
    // There is no count of a key's units in a month.
    const windowMs = !window || typeof window === 'object' ? 0 : durationMs(window, 'window')
    const taken = windowMs && takenUnder(metrics, { policy: policy.name, windowMs })
    if (bounds[0] === undefined || bounds[1] === undefined || !taken) {
      unclear.push(policy.name)
      return []
    }
    const { basis, top, keys } = taken
    const between = (low: number, high: number): readonly Taken[] =>
      keys.filter(({ perWindow }) => perWindow > low && perWindow <= high)
    return [
      {
        ...{ policy: policy.name, basis, scope: top.scope, processes: top.processes },
        newlyDenied: between(bounds[1], bounds[0]),
        newlyAllowed: between(bounds[0], bounds[1]),
      },
    ]
  })
  if (unclear.length === 0) return { known: true, policies: found }
  const names = unclear.join(', ')
  const detail = `Unknown for ${names}: there are no counts yet, or the limit depends on the request.`
  return { known: found.length > 0, why: detail, policies: found }
}

function sameBounds(one: PolicyEntry, other: PolicyEntry): boolean {
  return ['limit', 'mode', 'enforce', 'burst'].every(
    (field) => JSON.stringify(one[field]) === JSON.stringify(other[field]),
  )
}

/** Units that an identity may take in one window; `undefined` if that is not a single number. */
function boundOf({ limit, mode, enforce }: PolicyEntry): number | undefined {
  if (mode === 'shadow' || limit === 'unlimited') return Number.POSITIVE_INFINITY
  if (enforce && 'share' in enforce && enforce.share === 0) return Number.POSITIVE_INFINITY
  return typeof limit === 'number' ? limit : undefined
}
