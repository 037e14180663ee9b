import type { KeyState } from '../algorithms/algorithm.ts'
import { algorithmOf } from '../algorithms/table.ts'
import type { MemoryStore } from '../memory-store/memory-store.ts'
import type { ChangeAtStore, Check, Held, Home, Receipt } from '../model/check.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { DecidingOp, Store } from '../model/store.ts'
import { BoundedMap } from '../runtime/bounded-map.ts'
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

/** Decides in bounded local memory while a store is away, and remembers the debts and blocks. */
export class Fallback implements Home {
  readonly debts: Debts = new Debts()
  readonly #memory: MemoryStore
  /** Receipts of the store for the units of one local receipt alone. */
  readonly #own = new WeakMap<Receipt, Receipt>()
  /** The keys whose blocks the store has told of. */
  readonly #blocked = new BoundedMap<true>(maxBlocked)

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
        this.debts.owe({ check, local, units: check.cost }, receipt, isDoubtful)
      }
    }
    return decision
  }

  /** Gives units back here, and at the store where it has counted them since. */
  giveBack(held: Held, changeAtStore: ChangeAtStore): boolean {
    const { receipt, cost, refunded = 0 } = held
    const before = unitsNow(held)
    const [outcome] = this.#memory.apply('refund', [held])
    const own = this.#own.get(receipt)
    if (own) void changeAtStore('refund', [{ ...own.check, cost, receipt: own, refunded }])
    else {
      // Only the units that still counted are given back.
      const units = Math.min(cost, Math.max(0, before - unitsNow(held)))
      this.debts.giveBack(receipt, units, changeAtStore)
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
      const { policy, key } = check
      if (!allowed) {
        this.overwrite('block', [{ ...check, cost: retryAfterMs }])
        this.#blocked.set(policy.id, key, true)
        // An unknown outcome, or one of a charge, shows nothing about a block.
      } else if (remaining > 0 && this.#blocked.get(policy.id, key)) {
        this.#blocked.delete(policy.id, key)
        this.overwrite('reset', [check])
      }
    }
  }

  /** Tells whether the store has taken the units of a receipt of this process. */
  isPaid(receipt: Receipt): boolean {
    return this.#own.has(receipt) || this.debts.isPaid(receipt)
  }

  /** Notes that the store has taken the units of one request that this process took too. */
  pair(local: Receipt, atStore: Receipt): void {
    this.#own.set(local, atStore)
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

function unitsNow({ receipt }: Held): number {
  const { check, incarnation } = receipt
  const algorithm = algorithmOf(check.policy)
  const now = Date.now()
  return algorithm.used(algorithm.clamp(incarnation as KeyState, check, now), check, now)
}
