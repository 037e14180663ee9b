import { algorithms } from '../algorithms/table.ts'
import type { Check, Receipt } from '../check.ts'
import { type Decision, decisionOf } from '../decision.ts'
import type { MemoryStore } from '../memory-store/memory-store.ts'
import type { Outcome, StoreOp } from '../store.ts'
import { Debts, type Due } from './debts.ts'
import { localCheck, localOutcome } from './local-share.ts'

/** The operations that decide or take; the others settle what those have done. */
export type AskOp = Extract<StoreOp, 'consume' | 'peek' | 'charge'>

export interface LocalAsk {
  readonly op: AskOp
  readonly checks: readonly Check[]
  /** How many processes decide so, each with its share of the limits. */
  readonly instances: number
  /** Whether the store was asked, and has not answered yet. */
  readonly isDoubtful: boolean
}

/** Decides in bounded local memory while a store is away, and remembers what the store has to be told. */
export class Fallback {
  readonly debts: Debts = new Debts()
  readonly #memory: MemoryStore
  readonly #givenBack = new WeakSet<Receipt>()
  /** What the store has taken for what was taken here. */
  readonly #twins = new WeakMap<Receipt, Receipt>()

  constructor(memory: MemoryStore) {
    this.#memory = memory
  }

  isIn(memory: MemoryStore): boolean {
    return this.#memory === memory
  }

  decide({ op, checks, instances, isDoubtful }: LocalAsk): Decision {
    const locals = checks.map((check) => localCheck(check, instances))
    const decision = decisionOf(this.#memory.apply(op, locals), 'fallback')
    const { outcomes } = decision
    if (op === 'charge' || (op === 'consume' && decision.allowed)) {
      for (const [index, check] of checks.entries()) {
        const receipt = outcomes[index]?.receipt
        const local = locals[index] ?? check
        const receipts = receipt ? [receipt] : []
        this.debts.owe({ check, local, units: check.cost, receipts, isDoubtful })
      }
    }
    if (instances === 1) return decision
    const told = outcomes.map((outcome, index) => {
      const check = checks[index]
      return check ? localOutcome(outcome, check) : outcome
    })
    return { ...decision, outcomes: told }
  }

  /** With what has to be given back at the store too, since it has it already. */
  settle(
    op: StoreOp,
    checks: readonly Check[],
  ): { outcomes: readonly Outcome[]; atStore: readonly Check[] } {
    if (op !== 'refund') return { outcomes: this.#memory.apply(op, checks), atStore: [] }
    const before = this.#memory.apply('peek', checks)
    const outcomes = this.#memory.apply('refund', checks)
    const atStore: Check[] = []
    for (const [index, check] of checks.entries()) {
      // As far as it counted still.
      const left = outcomes[index]?.remaining ?? 0
      this.debts.strike(check, Math.max(0, left - (before[index]?.remaining ?? 0)))
      if (!check.receipt) continue
      this.#givenBack.add(check.receipt)
      const twin = this.#twins.get(check.receipt)
      if (twin) atStore.push({ ...twin.check, cost: check.cost, receipt: twin })
    }
    return { outcomes, atStore }
  }

  /** Does here what was done at the store. */
  overwrite(op: 'reset' | 'block', checks: readonly Check[]): void {
    if (op === 'reset') for (const check of checks) this.debts.forget(check)
    try {
      this.#memory.apply(op, checks)
    } catch {
      // A memory that is full of exhausted keys: then the block is in force at the store alone.
    }
  }

  /** The blocks that the store has told of: they are in force without it too, until they end. */
  remember(checks: readonly Check[], outcomes: readonly Outcome[]): void {
    for (const [index, check] of checks.entries()) {
      const { allowed = true, retryAfterMs = 0 } = outcomes[index] ?? {}
      if (allowed || check.policy.algorithm !== 'penalty') continue
      this.overwrite('block', [{ ...check, cost: retryAfterMs }])
    }
  }

  /** The store has taken what a receipt of this memory stands for. */
  pair(local: Receipt | undefined, atStore: Receipt | undefined): void {
    if (local && atStore) this.#twins.set(local, atStore)
  }

  isGivenBack(receipt: Receipt): boolean {
    return this.#givenBack.has(receipt)
  }

  /** The units of a debt that count still, as far as this memory can tell: one that is full may have forgotten some. */
  unitsOwed({ check, local, units }: Due): number {
    const most = Math.min(units, algorithms[check.policy.algorithm].capacity(check))
    const [outcome] = this.#memory.apply('peek', [local])
    if (!outcome?.remaining) return most
    return Math.min(most, algorithms[local.policy.algorithm].capacity(local) - outcome.remaining)
  }
}
