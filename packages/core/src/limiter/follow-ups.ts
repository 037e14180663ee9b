import { algorithmOf } from '../algorithms/table.ts'
import {
  type ChangeAtStore,
  type Check,
  type Held,
  type HeldOp,
  hasChanged,
  isReceiptItself,
  type Receipt,
  takeBack,
} from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import { invalid, knownFields, wholeNumber } from '../options/options.ts'
import { andThen, type MaybePromise, promised, together } from '../runtime/maybe-promise.ts'
import type { Limiter } from './limiter.ts'

/** Returns how many of the units that one policy took, and has not got back, are to end. */
type Share = (check: Check, left: number) => number

const leases: Share = (check, left) => (isLease(check) ? left : 0)

/** Returns the methods that change what decisions hold, including shadow policies. */
export function followUps(atStore: ChangeAtStore): Pick<Limiter, 'refund' | 'release' | 'renew'> {
  /** Changes units in their accounts. One call changes all that the store has counted. */
  function change(op: HeldOp, all: readonly Held[]): MaybePromise<readonly boolean[]> {
    const counted = all.filter(({ receipt }) => !receipt.home)
    const changes: MaybePromise<boolean>[] = []
    for (const one of all) {
      const { home } = one.receipt
      if (!home) continue
      const changed = op === 'refund' ? home.giveBack(one, atStore) : home.change?.(op, one)
      changes.push(changed ?? false)
    }
    if (counted.length > 0) changes.push(atStore(op, counted))
    return together(changes)
  }

  /** Returns whether anything was there; for a renewal, all that the enforced policies took. */
  function follow(op: HeldOp, decision: Decision, share: Share): MaybePromise<boolean> {
    const hold = op === 'renew' ? held : takeBack
    const changeOf = (one: Decision) => change(op, heldBy(one, share, hold))
    const own = changeOf(decision)
    const verdict = (all: readonly boolean[]) => all.length > 0 && hasChanged(op, all)
    const { shadow } = decision
    if (!shadow) return andThen(own, verdict)
    return andThen(shadow.decisions, (shadows) =>
      andThen(together([own, ...shadows.map(changeOf)]), (all) =>
        verdict(op === 'renew' ? (all[0] ?? []) : all.flat()),
      ),
    )
  }

  return {
    async refund(decision, options = {}) {
      knownFields(options, 'options', ['units', 'policies'])
      const { units, policies } = options
      if (units !== undefined) {
        wholeNumber(units, { option: 'units', code: 'SLUICE_COST_INVALID' }, { min: 0 })
      }
      if (policies !== undefined && !Array.isArray(policies)) {
        throw invalid({ option: 'policies' }, policies, "an array of the limiter's policies")
      }
      return follow('refund', decision, (check, left) => {
        if (policies?.some(({ id }) => id === check.policy.id) === false) return 0
        if (units === undefined) return left
        return isLease(check) ? 0 : Math.min(units, left)
      })
    },
    release: (decision) => promised(follow, 'release', decision, leases),
    renew: (decision) => promised(follow, 'renew', decision, leases),
  }
}

function held(receipt: Receipt, cost: number): Held {
  return { ...receipt.check, cost, receipt }
}

function isLease({ policy }: Check): boolean {
  return algorithmOf(policy).counts === 'leases'
}

function heldBy(decision: Decision, share: Share, hold: typeof held): readonly Held[] {
  if (!Array.isArray(decision?.outcomes)) {
    throw invalid({ option: 'decision' }, decision, 'a decision from consume or charge')
  }
  const all: Held[] = []
  for (const { receipt } of decision.outcomes) {
    if (!isReceiptItself(receipt)) continue
    const left = receipt.check.cost - receipt.refunded
    const cost = left > 0 ? share(receipt.check, left) : 0
    if (cost > 0) all.push(hold(receipt, cost))
  }
  return all
}
