/// <reference lib="esnext.disposable" />
import type { Decision } from '../model/decision.ts'
import { wholeNumber } from '../options/options.ts'
import type { StopSignal } from '../waiting/timers.ts'
import type { Pool } from './pool.ts'
import type { CountedUnits } from './units.ts'

/** The runtime's `AbortSignal`, in programs that know its type. */
export type BudgetSignal = typeof globalThis extends { AbortSignal: { prototype: infer Signal } }
  ? Signal
  : StopSignal

declare const AbortController: new () => { readonly signal: BudgetSignal; abort(): void }

/** The limiter that a reservation comes from. */
interface ReservedFrom {
  /** The accounts of the policies whose units were reserved. */
  readonly accounts: readonly (Pool | CountedUnits)[]
  /**
   * Reserves more units of all policies, or of none.
   * @param request all calls for it share one deadline
   */
  obtain(units: number, request: object): Promise<unknown>
  /** Returns why there are no more units, and when there will be. Takes nothing. */
  explain(units: number, request: object): Promise<Decision>
  /** Counts units that were spent without being reserved, and all units if none are held. */
  settle(missing: number, total: number): Promise<unknown>
}

/** Options of `settle`. */
export interface SettleOptions {
  /** The total cost of the work, if it is more than the units spent. @default `spent` */
  total?: number | undefined
}

/** Units that one piece of work may spend while it runs. End it with `settle` or `cancel`. */
export class Reservation {
  /** The decision about the reservation. If it is denied, there is nothing to spend. */
  readonly decision: Decision
  /** Units to request when few are left; 0 to never request any. */
  readonly step: number
  readonly #from: ReservedFrom
  #left: number
  #spent = 0
  /** Below this number of units, it requests another step; 0 during a request. */
  #lowMark: number
  readonly #abort = new AbortController()
  #settled: Promise<void> | undefined

  constructor(decision: Decision, from: ReservedFrom, amounts: { units: number; step: number }) {
    const { units, step } = amounts
    this.decision = decision
    this.#from = from
    this.step = step
    // Without an account nothing limits it: the key is unlimited, or the policy is in shadow.
    const mostUnits = from.accounts.length === 0 ? Number.POSITIVE_INFINITY : units
    this.#left = decision.allowed ? mostUnits : 0
    this.#lowMark = decision.allowed ? step / 2 : 0
    if (decision.allowed) for (const account of from.accounts) account.users += 1
  }

  get allowed(): boolean {
    return this.decision.allowed
  }

  /** The units that may be spent. */
  get left(): number {
    return this.#left
  }

  get spent(): number {
    return this.#spent
  }

  /** Aborts after a `spend` that returned false, `cancel` or `limiter.close`; aborted if denied. */
  get signal(): BudgetSignal {
    if (!this.allowed) this.#abort.abort()
    return this.#abort.signal
  }

  /**
   * Spends units. Below half a step, it requests more in the background.
   * @returns false if fewer units are left: nothing was spent, and `signal` aborts
   */
  spend(units = 1): boolean {
    if (!Number.isSafeInteger(units) || units < 0) wholeNumber(units, unitsPlace, { min: 0 })
    if (units > this.#left || !this.#has(units)) {
      this.#abort.abort()
      return false
    }
    for (const account of this.#from.accounts) account.spend(units)
    this.#left -= units
    this.#spent += units
    if (this.#left < this.#lowMark) void this.#askMore()
    return true
  }

  /**
   * Adds units to the budget, of all policies or of none.
   * @returns a decision: if denied, it says when there may be units again
   */
  async more(units: number): Promise<Decision> {
    wholeNumber(units, unitsPlace, { min: 1 })
    const request = {}
    if (await this.#grow(units, request)) return this.decision
    if (!this.#settled) return this.#from.explain(units, request)
    return { ...this.decision, allowed: false, retryAfterMs: Number.POSITIVE_INFINITY }
  }

  /**
   * Ends the reservation: the store counts the spent units, and the rest is returned. A higher
   * `total` is counted too. Spent units stay counted even if `total` is lower.
   */
  settle({ total = this.#spent }: SettleOptions = {}): Promise<void> {
    wholeNumber(total, { option: 'total', code: 'SLUICE_COST_INVALID' }, { min: 0 })
    this.#settled ??= this.#settle(total)
    return this.#settled
  }

  /** Ends the reservation with the units spent so far, and aborts `signal`. */
  cancel(): Promise<void> {
    this.#abort.abort()
    return this.settle()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.settle()
  }

  async #settle(total: number): Promise<void> {
    if (!this.allowed) return
    const { accounts } = this.#from
    this.#lowMark = 0
    const fits = Math.min(Math.max(0, total - this.#spent), this.#left)
    if (this.#has(fits)) this.spend(fits)
    const missing = Math.max(0, total - this.#spent)
    this.#spent += missing
    const left = this.#left
    this.#left = 0
    const ends = accounts.map((account) => account.release(left))
    for (const account of accounts) account.users -= 1
    await Promise.all([...ends, this.#from.settle(missing, this.#spent)])
  }

  #has(units: number): boolean {
    for (const account of this.#from.accounts) if (!account.has(units)) return false
    return true
  }

  async #askMore(): Promise<void> {
    this.#lowMark = 0
    // A failure of the store that its failure mode did not handle is reported to `more`.
    const isThere = await this.#grow(this.step, {}).catch(() => false)
    // After a refusal it requests less and less often: each time half of the rest is spent.
    this.#lowMark = isThere ? this.step / 2 : this.#left / 2
  }

  async #grow(units: number, request: object): Promise<boolean> {
    if (this.#settled || !this.allowed || !(await this.#from.obtain(units, request))) return false
    if (this.#settled) {
      for (const account of this.#from.accounts) void account.release(units)
      return false
    }
    this.#left += units
    return true
  }
}

const unitsPlace = { option: 'units', code: 'SLUICE_COST_INVALID' } as const
