import type { Check, Held, Receipt } from '../model/check.ts'
import type { Outcome } from '../model/store.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { OwnGrant } from './holding.ts'
import type { GrantCaller } from './hot-policy.ts'

/** Asks for a grant. A call that returns no units leaves the denials of the key as they are. */
export function askForGrant(
  { store, applyChange }: GrantCaller,
  check: Check,
  told: readonly OwnGrant[],
): MaybePromise<readonly Outcome[]> {
  return told.some(mustBeTold) ? applyChange('grant', [check]) : store.apply('grant', [check])
}

/** The store records a grant that was spent whole by itself. One without an answer may be held. */
export function mustBeTold({ left, units }: OwnGrant): boolean {
  return left > 0 || units === 0
}

/** Notes which units of the store were those of a grant, and gives back what waits for that. */
export function settle(caller: GrantCaller, grant: OwnGrant, receipt: Receipt): void {
  const { policy, key, limit } = receipt.check
  grant.settled = receipt
  if (grant.lateUnits > 0) {
    void refundQuietly(caller, [{ policy, key, limit, cost: grant.lateUnits, receipt }])
  }
}

/** A failure is ignored: units that cannot be given back stay taken, which is safe. */
export async function refundQuietly(
  { applyChange }: GrantCaller,
  held: readonly Held[],
): Promise<boolean> {
  try {
    return (await applyChange('refund', held)).some(({ allowed }) => allowed)
  } catch {
    return false
  }
}
