import { type Decision, invalid, type Policy } from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'

/** Tells whether only soft policies deny the request. */
export function isSoft(
  { outcomes, source }: Decision,
  soft: readonly string[] | undefined,
): boolean {
  if (source === 'closed' || source === 'shed' || outcomes.length === 0) return false
  return outcomes.every(
    ({ allowed, policy }) =>
      allowed || (mayBeSoft(policy) && (soft?.includes(policy.name) ?? true)),
  )
}

/** @throws SluiceError when no policy has the name */
export function checkSoft(
  soft: readonly string[] | undefined = [],
  policies: readonly Policy[],
): void {
  const names = policies.filter(mayBeSoft).map(({ name }) => name)
  const wrong = soft.find((name) => !names.includes(name))
  if (wrong === undefined) return
  const legal = `names of policies that are limits: ${names.map((name) => `'${name}'`).join(', ')}`
  throw invalid({ option: 'soft' }, wrong, legal)
}

/** A request that a penalty blocks is refused. */
function mayBeSoft(policy: Policy): boolean {
  return algorithmOf(policy).counts !== 'strikes'
}
