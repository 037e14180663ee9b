import { algorithmOf } from '../algorithms/table.ts'
import {
  type ChangeAtStore,
  type Check,
  type Held,
  isReceiptItself,
  type Receipt,
} from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import { invalid, knownFields, wholeNumber } from '../options/options.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { processWide } from '../runtime/process-wide.ts'

/** Options of `refund`. */
export interface RefundOptions {
  /**
   * The most units that each policy gives back, a whole number ≥ 0: for callers that reserve an
   * estimate and return the rest. The refunds of one decision never give back more than it took. A
   * lease of a `concurrency` policy has no parts, so it stays until it is released.
   * @default all that is left
   */
  units?: number | undefined
  /** The policies that give back what is theirs. @default all */
  policies?: readonly Policy[] | undefined
}

/**
 * Units of each receipt that were given back, by whichever limiter, and whoever holds copies of the
 * decision.
 */
const spent = processWide('@sluice/core/spent-receipts/1', () => new WeakMap<Receipt, number>())

/**
 * Refunds, releases and renews what decisions hold, in the policies that are enforced and in those
 * in shadow.
 */
export class FollowUps {
  readonly #atStore: ChangeAtStore

  constructor(atStore: ChangeAtStore) {
    this.#atStore = atStore
  }

  async refund(decision: Decision, options: RefundOptions = {}): Promise<boolean> {
    knownFields(options, 'options', ['units', 'policies'])
    const { units, policies } = options
    if (units !== undefined) {
      wholeNumber(units, { option: 'units', code: 'SLUICE_COST_INVALID' }, { min: 0 })
    }
    if (policies !== undefined && !Array.isArray(policies)) {
      throw invalid({ option: 'policies' }, policies, "an array of the limiter's policies")
    }
    return this.#followUp('refund', decision, (held) => {
      if (policies?.some(({ id }) => id === held.policy.id) === false) return undefined
      if (units === undefined) return held
      const cost = Math.min(units, held.cost)
      return cost === 0 || isLease(held) ? undefined : { ...held, cost }
    })
  }

  async release(decision: Decision): Promise<boolean> {
    return this.#followUp('release', decision, (held) => (isLease(held) ? held : undefined))
  }

  async renew(decision: Decision): Promise<boolean> {
    const own = this.#renewOne(decision)
    const shadows = decision?.shadow ? await decision.shadow.decisions : []
    await Promise.all(shadows.map((shadow) => this.#renewOne(shadow)))
    return own
  }

  /** @param share the units to give back of those that one policy took; `undefined` for none */
  async #followUp(
    op: 'refund' | 'release',
    decision: Decision,
    share: (held: Held) => Held | undefined,
  ): Promise<boolean> {
    const own = this.#followUpOne(op, decision, share)
    const shadows = decision.shadow ? await decision.shadow.decisions : []
    const others = shadows.map((shadow) => this.#followUpOne(op, shadow, share))
    return (await Promise.all([own, ...others])).includes(true)
  }

  #followUpOne(
    op: 'refund' | 'release',
    decision: Decision,
    share: (held: Held) => Held | undefined,
  ): Promise<boolean> {
    const held = heldBy(decision).flatMap((one) => share(one) ?? [])
    for (const { receipt, cost } of held) spent.set(receipt, refundedOf(receipt) + cost)
    return Promise.all(this.#change(op, held)).then((changed) => changed.includes(true))
  }

  /** Units that the store has counted are changed by one call, all others where they stand. */
  #change(op: Parameters<ChangeAtStore>[0], held: readonly Held[]): MaybePromise<boolean>[] {
    const atStore = held.filter(({ receipt }) => !receipt.home)
    const changes = held.flatMap((one): MaybePromise<boolean>[] => {
      const { home } = one.receipt
      if (!home) return []
      return [op === 'refund' ? home.giveBack(one, this.#atStore) : (home[op]?.(one) ?? false)]
    })
    return atStore.length > 0 ? [...changes, this.#atStore(op, atStore)] : changes
  }

  async #renewOne(decision: Decision): Promise<boolean> {
    const leases = heldBy(decision).filter(isLease)
    if (leases.length === 0) return false
    const renewed = await Promise.all(this.#change('renew', leases))
    return renewed.every((isHeld) => isHeld)
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
    const refunded = refundedOf(receipt)
    const cost = receipt.check.cost - refunded
    return cost > 0 ? [{ ...receipt.check, cost, receipt, refunded }] : []
  })
}

function refundedOf(receipt: Receipt): number {
  return spent.get(receipt) ?? 0
}
