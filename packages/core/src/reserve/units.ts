import type { Moment } from '../ledger/holding.ts'
import { type ChangeAtStore, type Check, giveBack, type Receipt } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { Caller } from '../resilience/pending-ask.ts'

/** The units of one policy and key that reservations spend. */
export interface Account {
  /**
   * Reserves the units of a check. Resolves to the decision that admits them, or to `undefined` if
   * there is no room for all of them.
   * @param request all calls for it wait for one deadline together
   */
  obtain(check: Check, request: object): Promise<Decision | undefined>
  /** Keeps the account until `leave`. */
  join(): void
  leave(): void
  /** Tells whether so many units may be spent at this moment. */
  has(units: number): boolean
  /** Spends units of a reservation. Call it right after `has`. */
  spend(units: number): void
  /** Gives up units of a reservation. Resolves when the store was told. Never rejects. */
  release(units: number): Promise<unknown>
  /** Gives up all units, whoever has reserved them. */
  close(): Promise<unknown>
}

/** Units of one grant of the store, or units that were counted when they were reserved. */
export interface Units {
  left: number
  /** Units that were given up; of a grant, since the store was last told. */
  freed: number
  /** The units may be spent before this moment. `undefined`: for ever. */
  endsAt: Moment | undefined
  /** The id of the grant; `undefined` for units that are counted already. */
  readonly grant?: number
  readonly receipt?: Receipt | undefined
}

/** Admitted units, and the decision without their receipt: the account alone gives them back. */
export function takeOut(
  decision: Decision,
  left: number,
  endsAt?: Moment,
): { readonly units: Units; readonly decision: Decision } {
  const { receipt } = decision.outcomes[0] ?? {}
  const outcomes = decision.outcomes.map((outcome) => ({ ...outcome, receipt: undefined }))
  return { units: { left, freed: 0, endsAt, receipt }, decision: { ...decision, outcomes } }
}

/**
 * Gives up so many units, the last ones first. Counted ones go back at once, those of a grant with
 * its next renewal.
 */
export function giveUpLast(all: readonly Units[], count: number, change: ChangeAtStore): unknown[] {
  let rest = count
  return all.toReversed().map((units) => {
    const { receipt, freed: refunded, left } = units
    const cost = Math.max(0, Math.min(left, rest))
    rest -= cost
    units.left -= cost
    units.freed += cost
    const isBack = cost > 0 && receipt
    return isBack && giveBack({ ...receipt.check, cost, receipt, refunded }, change)
  })
}

/**
 * The units of one reservation in a fixed window. They are counted when they are reserved, and
 * belong to that window: they may be spent after its end, but then the store takes none back.
 */
export class CountedUnits implements Account {
  readonly #caller: Caller
  readonly #all: Set<Account>
  readonly #units: Units[] = []
  #left = 0

  /** @param all the accounts that are closed with their limiter */
  constructor(caller: Caller, all: Set<Account>) {
    this.#caller = caller
    this.#all = all
  }

  async obtain(check: Check, request: object): Promise<Decision | undefined> {
    const decided = await this.#caller.decide('consume', [check], request)
    if (!decided.allowed) return undefined
    const { units, decision } = takeOut(decided, check.cost)
    this.#units.push(units)
    this.#left += check.cost
    return decision
  }

  join(): void {
    this.#all.add(this)
  }

  leave(): void {
    this.#all.delete(this)
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

  close(): Promise<unknown> {
    return this.release(this.#left)
  }
}
