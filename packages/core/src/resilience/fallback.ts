import { algorithms } from '../algorithms/table.ts'
import type { Check, Receipt } from '../check.ts'
import { type Decision, decisionOf } from '../decision.ts'
import type { MemoryStore } from '../memory-store/memory-store.ts'
import type { Outcome, StoreOp } from '../store.ts'
import { type Debt, Debts } from './debts.ts'
import { localCheck, localOutcome } from './local-share.ts'

/** The operations that decide or take; the others settle what those have done. */
export type AskOp = Extract<StoreOp, 'consume' | 'peek' | 'charge'>

/** Decides in bounded local memory while a store is away, and remembers what the store has to be told. */
export class Fallback {
  readonly debts: Debts = new Debts()
  readonly #memory: MemoryStore
  readonly #givenBack = new WeakSet<Receipt>()

  constructor(memory: MemoryStore) {
    this.#memory = memory
  }

  isIn(memory: MemoryStore): boolean {
    return this.#memory === memory
  }

  /** @param instances how many processes decide so, each with its share of the limits */
  decide(op: AskOp, checks: readonly Check[], instances: number): Decision {
    const locals = checks.map((check) => localCheck(check, instances))
    const outcomes = this.#memory.apply(op, locals)
    const decision = decisionOf(outcomes, 'fallback')
    if (op === 'charge' || (op === 'consume' && decision.allowed)) {
      for (let index = 0; index < checks.length; index += 1) {
        const [check, local] = [checks[index], locals[index]]
        if (check && local) this.debts.owe(check, local)
      }
    }
    if (instances === 1) return decision
    return {
      ...decision,
      outcomes: outcomes.map((outcome, index) => {
        const check = checks[index]
        return check ? localOutcome(outcome, check) : outcome
      }),
    }
  }

  settle(op: StoreOp, checks: readonly Check[]): readonly Outcome[] {
    if (op === 'refund') {
      for (const check of checks) {
        this.debts.strike(check)
        if (check.receipt) this.#givenBack.add(check.receipt)
      }
    }
    return this.#memory.apply(op, checks)
  }

  reset(checks: readonly Check[]): void {
    for (const check of checks) this.debts.take(check)
    this.#memory.apply('reset', checks)
  }

  /** Whether what a decision took here was given back since. */
  isGivenBack({ outcomes }: Decision): boolean {
    return outcomes.some(({ receipt }) => receipt !== undefined && this.#givenBack.has(receipt))
  }

  /** The units of a debt that count still: what has left the window since is no matter any more. */
  unitsOwed({ local, units }: Debt): number {
    const [outcome] = this.#memory.apply('peek', [local])
    if (outcome?.remaining === undefined) return units
    const used = algorithms[local.policy.algorithm].capacity(local) - outcome.remaining
    return Math.min(units, used)
  }
}
