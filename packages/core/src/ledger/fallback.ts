import type { KeyState } from '../algorithms/algorithm.ts'
import { algorithmOf } from '../algorithms/table.ts'
import type { MemoryStore } from '../memory-store/memory-store.ts'
import {
  type ChangeAtStore,
  type Check,
  type Held,
  type Home,
  keyId,
  type Receipt,
} from '../model/check.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { DecidingOp, Store } from '../model/store.ts'
import { Debts, type Due } from './debts.ts'
import { localCheck, localOutcome } from './local-share.ts'

export interface LocalAsk {
  readonly op: DecidingOp
  readonly checks: readonly Check[]
  /** The number of processes that decide locally, each with its share of the limits. */
  readonly instances: number
  /** True when the store was asked, and has not answered yet. */
  readonly isDoubtful: boolean
}

/** The receipt of the store for units that this process took. */
interface StoreReceipt {
  readonly receipt: Receipt
  /**
   * True when the receipt is for these units alone; false when it is for a payment with others in
   * it.
   */
  readonly isItsOwn: boolean
}

/** A local receipt in a payment, and the units of it that were given back before the payment. */
interface Paid {
  readonly receipt: Receipt
  readonly givenBack: number
}

/** Decides in bounded local memory while a store is away, and remembers the debts and blocks. */
export class Fallback implements Home {
  readonly debts: Debts = new Debts()
  readonly #memory: MemoryStore
  /** Units that were refunded by receipt, as far as they still counted. */
  readonly #givenBack = new WeakMap<Receipt, number>()
  readonly #storeReceipts = new WeakMap<Receipt, StoreReceipt>()
  /** The keys whose blocks the store has told of. */
  readonly #blocked = new Set<string>()

  constructor(memory: MemoryStore) {
    this.#memory = memory
  }

  decide({ op, checks, instances, isDoubtful }: LocalAsk): Decision {
    const locals = checks.map((check) => localCheck(check, instances))
    const outcomes = this.#memory.apply(op, locals)
    const told = outcomes.map((outcome, index) => localOutcome(outcome, checks[index] ?? outcome))
    const decision = decisionOf(told, checks, 'fallback')
    for (const { receipt } of outcomes) if (receipt) receipt.home = this
    if (op === 'charge' || (op === 'consume' && decision.allowed)) {
      for (const [index, check] of checks.entries()) {
        const receipt = outcomes[index]?.receipt
        const local = locals[index] ?? check
        const receipts = receipt ? [receipt] : []
        this.debts.owe({ check, local, units: check.cost, receipts, isDoubtful })
      }
    }
    return decision
  }

  /** Gives units back here, and at the store where it has counted them since. */
  giveBack(held: Held, changeAtStore: ChangeAtStore): boolean {
    const { receipt, cost } = held
    const before = unitsNow(held)
    const [outcome] = this.#memory.apply('refund', [held])
    // Only the units that still counted are given back.
    const units = Math.min(cost, Math.max(0, before - unitsNow(held)))
    this.#countGivenBack(receipt, units)
    const stored = this.#storeReceipts.get(receipt)
    const atStore = stored?.isItsOwn ? cost : units
    if (!stored) this.debts.cancel(receipt, units)
    else if (atStore > 0) {
      void changeAtStore('refund', [this.#giveBack(stored.receipt, atStore)])
    }
    return outcome?.allowed ?? false
  }

  release(held: Held): boolean {
    return this.#memory.apply('release', [held])[0]?.allowed ?? false
  }

  renew(held: Held): boolean {
    return this.#memory.apply('renew', [held])[0]?.allowed ?? false
  }

  /** Repeats an operation of the store in this memory. */
  overwrite(op: 'reset' | 'block', checks: readonly Check[]): void {
    if (op === 'reset') for (const check of checks) this.debts.forget(check)
    try {
      this.#memory.apply(op, checks)
    } catch {
      // The memory is full of exhausted keys. Then the block is in force at the store alone.
    }
  }

  /** The checks of a change, for this process: of a digest, where it holds something of its key. */
  async keyed(checks: readonly Check[], store: Store): Promise<readonly Check[]> {
    if (checks.every(({ digest }) => digest === undefined)) return checks
    const keyed: Check[] = []
    for (const { digest, ...check } of checks) {
      const found = digest === undefined ? check : await this.#memory.keys.keyFor(digest, store)
      if (found) keyed.push({ ...check, key: found.key })
    }
    return keyed
  }

  /**
   * Remembers the blocks that outcomes of the store show. They stay in force during an outage,
   * until they end or the store has lifted them.
   */
  remember(checks: readonly Check[], { allowed: isAllowed, outcomes }: Decision): void {
    // Only a denial shows a block; any other outcome means that a block may have been lifted.
    if (isAllowed && this.#blocked.size === 0) return
    for (const [index, check] of checks.entries()) {
      const { allowed = true, retryAfterMs = 0, remaining = 0 } = outcomes[index] ?? {}
      if (algorithmOf(check.policy).counts !== 'strikes') continue
      const id = keyId(check)
      if (!allowed) {
        this.overwrite('block', [{ ...check, cost: retryAfterMs }])
        this.#blocked.add(id)
        if (this.#blocked.size > maxBlocked) this.#blocked.delete(firstOf(this.#blocked))
        // An unknown outcome, or one of a charge, shows nothing about a block.
      } else if (remaining > 0 && this.#blocked.delete(id)) this.overwrite('reset', [check])
    }
  }

  /** Tells whether the store has taken the units of a receipt of this process. */
  isPaid(receipt: Receipt): boolean {
    return this.#storeReceipts.has(receipt)
  }

  /** Notes that the store has taken the units of one request that this process took too. */
  pair(local: Receipt | undefined, atStore: Receipt): void {
    if (local) this.#storeReceipts.set(local, { receipt: atStore, isItsOwn: true })
  }

  /**
   * Notes that one charge of the store stands for these receipts. Returns the refunds for the
   * store, of units that were given back meanwhile.
   */
  pairAll(locals: readonly Paid[], atStore: Receipt | undefined): readonly Held[] {
    if (!atStore) return []
    // A late answer may have brought a receipt of its own.
    const others = locals.filter(({ receipt }) => !this.#storeReceipts.has(receipt))
    for (const { receipt } of others) {
      this.#storeReceipts.set(receipt, { receipt: atStore, isItsOwn: false })
    }
    const units = this.unitsGivenBackSince(others)
    return units > 0 ? [this.#giveBack(atStore, units)] : []
  }

  /** Returns the receipts in a payment. Units that were given back before are no part of it. */
  paidWith(receipts: readonly Receipt[]): readonly Paid[] {
    return receipts
      .map((receipt) => ({ receipt, givenBack: this.#givenBack.get(receipt) ?? 0 }))
      .filter(({ receipt, givenBack }) => givenBack < receipt.check.cost)
  }

  unitsGivenBackSince(paid: readonly Paid[]): number {
    return paid.reduce(
      (sum, { receipt, givenBack }) => sum + (this.#givenBack.get(receipt) ?? 0) - givenBack,
      0,
    )
  }

  #countGivenBack(receipt: Receipt, units: number): void {
    this.#givenBack.set(receipt, (this.#givenBack.get(receipt) ?? 0) + units)
  }

  /** Returns a refund at the store of so many more units. */
  #giveBack(receipt: Receipt, cost: number): Held {
    const refunded = this.#givenBack.get(receipt) ?? 0
    this.#countGivenBack(receipt, cost)
    return { ...receipt.check, cost, receipt, refunded }
  }

  /**
   * Returns the units of a debt that still count, as far as this memory can tell: a full memory may
   * have dropped some.
   */
  unitsOwed({ check, local, units }: Due): number {
    const algorithm = algorithmOf(check.policy)
    const most = Math.min(units, algorithm.capacity(check))
    // The debts of a bucket have drained meanwhile.
    if (algorithm.capacityLevel) return most
    const [outcome] = this.#memory.apply('peek', [local])
    if (!outcome?.remaining) return most
    return Math.min(most, algorithm.capacity(local) - outcome.remaining)
  }
}

/**
 * The most blocks that are remembered. The oldest are dropped first, and then end by themselves.
 */
const maxBlocked = 100_000

/** Returns the units that count for the key of a receipt. */
function unitsNow({ receipt }: Held): number {
  const { check, incarnation } = receipt
  const algorithm = algorithmOf(check.policy)
  const now = Date.now()
  return algorithm.used(algorithm.clamp(incarnation as KeyState, check, now), check, now)
}

function firstOf(ids: ReadonlySet<string>): string {
  const [first = ''] = ids
  return first
}
