import type { Check, Receipt } from './check.ts'
import type { Decision } from './decision.ts'
import type { MaybePromise } from './maybe-promise.ts'
import { invalid } from './options.ts'
import type { Policy } from './policy.ts'
import { processWide } from './process-wide.ts'
import type { Caller } from './resilience/pending-ask.ts'
import type { StoreAccess } from './resilience/store-access.ts'

/** What was taken is given back once, by whichever limiter, and whoever holds copies of the decision. */
const spent = processWide('@sluice/core/spent-receipts/1', () => new WeakSet<Receipt>())

/** Settles what decisions hold: their own policies', and those' in shadow, as soon as that is known. */
export class Holdings {
  readonly #access: StoreAccess
  readonly #caller: Caller

  constructor(access: StoreAccess, caller: Caller) {
    this.#access = access
    this.#caller = caller
  }

  /** @param only the policies to give back; left out: all */
  refund(decision: Decision, only: readonly Policy[] | undefined): Promise<boolean> {
    const isMeant = ({ policy }: Check): boolean => only?.some(({ id }) => id === policy.id) ?? true
    return this.#settle('refund', decision, isMeant)
  }

  release(decision: Decision): Promise<boolean> {
    return this.#settle('release', decision, isLease)
  }

  async renew(decision: Decision): Promise<boolean> {
    const own = this.#renewOne(decision)
    const shadows = decision?.shadow ? await decision.shadow.decisions : []
    await Promise.all(shadows.map((shadow) => this.#renewOne(shadow)))
    return own
  }

  async #settle(
    op: 'refund' | 'release',
    decision: Decision,
    isMeant: (check: Check) => boolean,
  ): Promise<boolean> {
    const own = this.#settleOne(op, decision, isMeant)
    const shadows = decision.shadow ? await decision.shadow.decisions : []
    const others = shadows.map((shadow) => this.#settleOne(op, shadow, isMeant))
    return (await Promise.all([own, ...others])).includes(true)
  }

  #settleOne(
    op: 'refund' | 'release',
    decision: Decision,
    isMeant: (check: Check) => boolean,
  ): MaybePromise<boolean> {
    const checks = heldBy(decision).filter(isMeant)
    if (checks.length === 0) return false
    for (const { receipt } of checks) spent.add(receipt)
    const settled = this.#access.settle(op, decision, checks, this.#caller)
    return settled.then((outcomes) => outcomes !== undefined)
  }

  async #renewOne(decision: Decision): Promise<boolean> {
    const leases = heldBy(decision).filter(isLease)
    if (leases.length === 0) return false
    const outcomes = await this.#access.settle('renew', decision, leases, this.#caller)
    return outcomes?.every(({ allowed }) => allowed) ?? false
  }
}

function isLease({ policy }: Check): boolean {
  return policy.algorithm === 'concurrency'
}

/** What a decision took and has not given back, with the receipts of it. */
function heldBy(decision: Decision): readonly (Check & { receipt: Receipt })[] {
  if (!Array.isArray(decision?.outcomes)) {
    throw invalid({ option: 'decision' }, decision, 'what consume or charge has answered')
  }
  return decision.outcomes.flatMap(({ receipt }) =>
    receipt && !spent.has(receipt) ? [{ ...receipt.check, receipt }] : [],
  )
}
