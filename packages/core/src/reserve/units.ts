import { type ChangeAtStore, type Check, giveBack, type Receipt } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { Caller } from '../resilience/caller.ts'
import type { Moment } from '../waiting/timers.ts'

/** Units of one of the store's grants, or units counted when they were reserved. */
export interface Units {
  left: number
  /** Units of a grant that were given up since the last report to the store. */
  freed: number
  /** The units may be spent before this moment; `undefined` means forever. */
  endsAt: Moment | undefined
  /** The id of the grant; `undefined` for already counted units. */
  readonly grant?: number
  readonly receipt?: Receipt | undefined
}

/** Admitted units, and the decision without their receipt: only the account gives them back. */
export function takeOut(
  decision: Decision,
  left: number,
  endsAt?: Moment,
): { readonly units: Units; readonly decision: Decision } {
  const { receipt } = decision.outcomes[0] ?? {}
  const outcomes = decision.outcomes.map((outcome) => ({ ...outcome, receipt: undefined }))
  return { units: { left, freed: 0, endsAt, receipt }, decision: { ...decision, outcomes } }
}

/** Gives up the last units. Counted ones go back at once, others with the next renewal. */
export function giveUpLast(all: readonly Units[], count: number, change: ChangeAtStore): unknown[] {
  let rest = count
  return all.toReversed().map((units) => {
    const { receipt, left } = units
    const cost = Math.max(0, Math.min(left, rest))
    rest -= cost
    units.left -= cost
    units.freed += cost
    return cost > 0 && receipt && giveBack(receipt, cost, change)
  })
}

/**
 * The units of one reservation in a fixed window. They are counted when they are reserved, and
 * belong to that window: they may be spent after its end, but then none can be returned.
 */
export class CountedUnits {
  /** Reservations that may still request units. */
  users = 0
  readonly #caller: Caller
  readonly #units: Units[] = []
  #left = 0

  constructor(caller: Caller) {
    this.#caller = caller
  }

  async obtain(check: Check, request: object): Promise<Decision | undefined> {
    const decided = await this.#caller.decide('consume', [check], request)
    if (!decided.allowed) return undefined
    const { units, decision } = takeOut(decided, check.cost)
    this.#units.push(units)
    this.#left += check.cost
    return decision
  }

  has(units: number): boolean {
    return this.#left >= units
  }

  spend(units: number): void {
    this.#left -= units
  }

  release(units: number): Promise<unknown> {
    const left = Math.min(units, this.#left)
    this.#left -= left
    return Promise.all(giveUpLast(this.#units, left, this.#caller.change))
  }
}
