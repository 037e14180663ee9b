import { type Decision, invalid, type Policy } from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'

/** True if only soft policies deny the request. */
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

/** @throws SluiceError when a name is of none of the policies, which would refuse all that is over them */
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

/** Whom a penalty blocks is refused. */
function mayBeSoft(policy: Policy): boolean {
  return algorithmOf(policy).counts !== 'strikes'
}
