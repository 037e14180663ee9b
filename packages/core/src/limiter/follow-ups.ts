import { algorithmOf } from '../algorithms/table.ts'
import {
  type ChangeAtStore,
  type Check,
  type Held,
  isReceiptItself,
  takeBack,
  unitsLeft,
} from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import { invalid, knownFields, wholeNumber } from '../options/options.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { Limiter } from './limiter.ts'

/** Returns the methods that change what decisions hold, in shadow policies too. */
export function followUps(atStore: ChangeAtStore): Pick<Limiter, 'refund' | 'release' | 'renew'> {
  /** Changes the units that the store has counted by one call, all others where they stand. */
  async function change(
    op: 'refund' | 'release' | 'renew',
    held: readonly Held[],
  ): Promise<readonly boolean[]> {
    const counted = held.filter(({ receipt }) => !receipt.home)
    const changes = held.flatMap((one): MaybePromise<boolean>[] => {
      const { home } = one.receipt
      if (!home) return []
      return [op === 'refund' ? home.giveBack(one, atStore) : (home[op]?.(one) ?? false)]
    })
    if (counted.length > 0) changes.push(atStore(op, counted))
    return Promise.all(changes)
  }

  /** @param share the units to end of those that one policy took; `undefined` for none */
  async function end(
    op: 'refund' | 'release',
    decision: Decision,
    share: (held: Held) => Held | undefined,
  ): Promise<boolean> {
    const endOf = (one: Decision) => {
      const held = heldBy(one).flatMap((each) => share(each) ?? [])
      return change(
        op,
        held.map(({ receipt, cost }) => takeBack(receipt, cost)),
      )
    }
    const own = endOf(decision)
    const shadows = decision.shadow ? await decision.shadow.decisions : []
    return (await Promise.all([own, ...shadows.map(endOf)])).flat().includes(true)
  }

  async function renewOne(decision: Decision): Promise<boolean> {
    const renewed = await change('renew', heldBy(decision).filter(isLease))
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
      return end('refund', decision, (held) => {
        if (policies?.some(({ id }) => id === held.policy.id) === false) return undefined
        if (units === undefined) return held
        const cost = Math.min(units, held.cost)
        return cost === 0 || isLease(held) ? undefined : { ...held, cost }
      })
    },
    release: (decision) => end('release', decision, (held) => (isLease(held) ? held : undefined)),
    async renew(decision) {
      const own = renewOne(decision)
      const shadows = decision?.shadow ? await decision.shadow.decisions : []
      await Promise.all(shadows.map(renewOne))
      return own
    },
  }
}

function isLease({ policy }: Check): boolean {
  return algorithmOf(policy).counts === 'leases'
}

function heldBy(decision: Decision): readonly Held[] {
  if (!Array.isArray(decision?.outcomes)) {
    throw invalid({ option: 'decision' }, decision, 'a decision of consume or charge')
  }
  return decision.outcomes.flatMap(({ receipt }) => {
    if (!isReceiptItself(receipt)) return []
    const cost = unitsLeft(receipt)
    return cost > 0 ? [{ ...receipt.check, cost, receipt }] : []
  })
}
