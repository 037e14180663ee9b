import type { Check, CountedKey } from '../model/check.ts'
import { BoundedMap } from '../runtime/bounded-map.ts'
import { Alarm } from '../waiting/timers.ts'

/**
 * The accounts of one kind of units that this process has admitted and the store has not counted,
 * by policy and key. Each kind has a bound of its own, so that a flood of strikes forgets no debt.
 */
export abstract class Ledger<Account> extends BoundedMap<Account> {
  readonly #due = new Set<Account>()
  readonly #alarm: Alarm

  /**
   * @param mustStay tells whether an account is kept beyond the bound @default none
   * @param mayLose false if the process must not end before what is due was reported to the store
   */
  constructor(bound: number, mustStay?: (account: Account) => boolean, mayLose = true) {
    super(bound, mustStay)
    this.#alarm = new Alarm(() => this.flushDue(), mayLose)
  }

  protected get hasDue(): boolean {
    return this.#due.size > 0
  }

  protected abstract open(check: Check): Account
  /** Tells the store of the units of an account that it does not know of, if there are some. */
  protected send(_account: Account): void {
    // Debts are paid by whoever takes them.
  }

  find({ policy, key }: CountedKey): Account | undefined {
    return this.get(policy.id, key)
  }

  of(check: Check): Account {
    const known = this.find(check)
    if (known) return known
    const account = this.open(check)
    this.set(check.policy.id, check.key, account)
    return account
  }

  /** Drops an account. Units that the store does not know are lost. */
  drop(key: CountedKey): void {
    const account = this.find(key)
    if (account) this.#due.delete(account)
    this.delete(key.policy.id, key.key)
  }

  /** Tells the store of an account within `delayMs`, together with the others that are due. */
  flushWithin(delayMs: number, account: Account): void {
    if (this.#due.has(account)) return
    this.#due.add(account)
    if (this.#due.size >= this.bound) this.flushDue()
    else this.#alarm.within(delayMs)
  }

  flush(account: Account): void {
    this.#due.delete(account)
    this.send(account)
  }

  flushDue(): void {
    this.#alarm.stop()
    for (const account of [...this.#due]) this.flush(account)
  }
}
