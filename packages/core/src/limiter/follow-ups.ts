import { algorithmOf } from '../algorithms/table.ts'
import {
  type ChangeAtStore,
  type Check,
  type Held,
  isReceiptItself,
  type Receipt,
  takeBack,
  unitsLeft,
} from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import { invalid, knownFields, wholeNumber } from '../options/options.ts'
import { andThen, isPromise, type MaybePromise, promised } from '../runtime/maybe-promise.ts'
import type { Limiter } from './limiter.ts'

/** Returns how many of the units that one policy took, and has not got back, are to end. */
type Share = (check: Check, left: number) => number

const leases: Share = (check, left) => (isLease(check) ? left : 0)

/** Returns the methods that change what decisions hold, including shadow policies. */
export function followUps(atStore: ChangeAtStore): Pick<Limiter, 'refund' | 'release' | 'renew'> {
  /** Changes units in their accounts. One call changes all that the store has counted. */
  function change(
    op: 'refund' | 'release' | 'renew',
    all: readonly Held[],
  ): MaybePromise<readonly boolean[]> {
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

  function end(op: 'refund' | 'release', decision: Decision, share: Share): MaybePromise<boolean> {
    const endOf = (one: Decision) => change(op, heldBy(one, share, takeBack))
    const own = endOf(decision)
    const { shadow } = decision
    if (!shadow) return andThen(own, (changed) => changed.includes(true))
    return andThen(shadow.decisions, (shadows) =>
      andThen(together([own, ...shadows.map(endOf)]), (all) => all.flat().includes(true)),
    )
  }

  async function renewOne(decision: Decision): Promise<boolean> {
    const renewed = await change('renew', heldBy(decision, leases, held))
    return renewed.length > 0 && !renewed.includes(false)
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
      return end('refund', decision, (check, left) => {
        if (policies?.some(({ id }) => id === check.policy.id) === false) return 0
        if (units === undefined) return left
        return isLease(check) ? 0 : Math.min(units, left)
      })
    },
    release: (decision) => promised(end, 'release', decision, leases),
    async renew(decision) {
      const own = renewOne(decision)
      const shadows = decision?.shadow ? await decision.shadow.decisions : []
      await Promise.all(shadows.map(renewOne))
      return own
    },
  }
}

function held(receipt: Receipt, cost: number): Held {
  return { ...receipt.check, cost, receipt }
}

function isLease({ policy }: Check): boolean {
  return algorithmOf(policy).counts === 'leases'
}

/** Returns values at once if all are there: a memory store changes units without a promise. */
function together<T>(values: readonly MaybePromise<T>[]): MaybePromise<readonly T[]> {
  return values.every((value): value is T => !isPromise(value)) ? values : Promise.all(values)
}

function heldBy(decision: Decision, share: Share, hold: typeof held): readonly Held[] {
  if (!Array.isArray(decision?.outcomes)) {
    throw invalid({ option: 'decision' }, decision, 'a decision from consume or charge')
  }
  const all: Held[] = []
  for (const { receipt } of decision.outcomes) {
    if (!isReceiptItself(receipt)) continue
    const left = unitsLeft(receipt)
    const cost = left > 0 ? share(receipt.check, left) : 0
    if (cost > 0) all.push(hold(receipt, cost))
  }
  return all
}
