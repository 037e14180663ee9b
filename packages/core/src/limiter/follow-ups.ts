import { algorithmOf } from '../algorithms/table.ts'
import type { Check, Receipt } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import { invalid, knownFields, wholeNumber } from '../options/options.ts'
import { isOfGrant } from '../prefetch/prefetcher.ts'
import type { Caller } from '../resilience/pending-ask.ts'
import type { StoreAccess } from '../resilience/store-access.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { processWide } from '../runtime/process-wide.ts'
import { UncountedBatch } from '../uncounted/known-key.ts'

/** Options of `refund`. */
export interface RefundOptions {
  /**
   * The most units that each policy gives back, a whole number ≥ 0: for callers that reserve an
   * estimate and return the rest. The refunds of one decision never give back more than it took. A
   * lease of a `concurrency` policy has no parts, so it stays until it is released.
   * @default all that is left
   */
  units?: number
  /** The policies that give back what is theirs. @default all */
  policies?: readonly Policy[]
}

/**
 * Units of each receipt that were given back, by whichever limiter, and whoever holds copies of the
 * decision.
 */
const spent = processWide('@sluice/core/spent-receipts/1', () => new WeakMap<Receipt, number>())

/** The refunds of one decision, by who holds the units. */
interface GivenBack {
  /** True if units are back that the store had not recorded. */
  readonly isBack: boolean
  /** Units taken here that the store has recorded. */
  readonly recorded: readonly Held[]
  /** Units taken here that the store was not told of in time. */
  readonly inFallback: readonly Held[]
  readonly others: readonly Held[]
}

/** A check whose units a decision took and has not given back. */
type Held = Check & { readonly receipt: Receipt }

/**
 * Refunds, releases and renews what decisions hold, in the policies that are enforced and in those
 * in shadow.
 */
export class FollowUps {
  readonly #access: StoreAccess
  readonly #caller: Caller

  constructor(access: StoreAccess, caller: Caller) {
    this.#access = access
    this.#caller = caller
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
  ): MaybePromise<boolean> {
    const checks = heldBy(decision).flatMap((held) => share(held) ?? [])
    if (checks.length === 0) return false
    for (const { receipt, cost } of checks) spent.set(receipt, refundedOf(receipt) + cost)
    const { isBack, recorded, inFallback, others } = this.#giveBackHere(checks)
    // Units that were taken here are recorded elsewhere than those of the other policies.
    const changes = [
      this.#change(op, { source: 'store' }, recorded),
      this.#change(op, { source: 'fallback' }, inFallback),
      this.#change(op, decision, others),
    ]
    if (changes.every((change) => change === undefined)) return isBack
    return Promise.all([isBack, ...changes]).then((changed) => changed.includes(true))
  }

  /** Returns whether anything was given back; `undefined` without any checks. */
  #change(
    op: 'refund' | 'release',
    decision: Pick<Decision, 'source'>,
    checks: readonly Held[],
  ): Promise<boolean> | undefined {
    if (checks.length === 0) return undefined
    const changed = this.#access.followUp(op, decision, checks, this.#caller)
    return changed.then((outcomes) => outcomes?.some(({ allowed }) => allowed) ?? false)
  }

  /** Gives back what was taken here. Returns the checks by who has recorded the others. */
  #giveBackHere(checks: readonly Held[]): GivenBack {
    let isBack = false
    const recorded: Held[] = []
    const inFallback: Held[] = []
    const others: Held[] = []
    for (const check of checks) {
      const { incarnation } = check.receipt
      if (incarnation instanceof UncountedBatch) {
        const found = incarnation.giveBack(check.cost)
        if (found === true) isBack = true
        if (typeof found === 'boolean') continue
        const charged = { ...check, receipt: found.receipt }
        if (found.source === 'store') recorded.push(charged)
        else inFallback.push(charged)
      } else if (isOfGrant(check.receipt)) {
        const found = this.#access.prefetcher.giveBack(check.receipt, check.cost)
        if (found === true) isBack = true
        else if (found !== false) recorded.push({ ...check, receipt: found })
      } else others.push(check)
    }
    return { isBack, recorded, inFallback, others }
  }

  async #renewOne(decision: Decision): Promise<boolean> {
    const leases = heldBy(decision).filter(isLease)
    if (leases.length === 0) return false
    const outcomes = await this.#access.followUp('renew', decision, leases, this.#caller)
    return outcomes?.every(({ allowed }) => allowed) ?? false
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
    if (!receipt) return []
    const refunded = refundedOf(receipt)
    const cost = receipt.check.cost - refunded
    return cost > 0 ? [{ ...receipt.check, cost, receipt, refunded }] : []
  })
}

function refundedOf(receipt: Receipt): number {
  return spent.get(receipt) ?? 0
}
