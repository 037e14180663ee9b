import { applyChange } from '../denials/denials-of-store.ts'
import type { Check, Held, Receipt } from '../model/check.ts'
import type { Outcome, Store } from '../model/store.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { OwnGrant } from './holding.ts'

/** Asks for a grant. A call that returns no units leaves the denials of the key as they are. */
export function askForGrant(
  store: Store,
  check: Check,
  told: readonly OwnGrant[],
): MaybePromise<readonly Outcome[]> {
  return told.some(mustBeTold)
    ? applyChange(store, 'grant', [check])
    : store.apply('grant', [check])
}

/** The store records a grant that was spent whole by itself. One without an answer may be held. */
export function mustBeTold({ left, units }: OwnGrant): boolean {
  return left > 0 || units === 0
}

/** Notes which units of the store were those of a grant, and gives back what waits for that. */
export function settle(store: Store, grant: OwnGrant, receipt: Receipt): void {
  const { policy, key, limit } = receipt.check
  grant.settled = receipt
  if (grant.lateUnits > 0) {
    void refundQuietly(store, [{ policy, key, limit, cost: grant.lateUnits, receipt }])
  }
}

/** A failure is ignored: units that cannot be given back stay taken, which is safe. */
export async function refundQuietly(store: Store, held: readonly Held[]): Promise<boolean> {
  try {
    return (await applyChange(store, 'refund', held)).some(({ allowed }) => allowed)
  } catch {
    return false
  }
}
