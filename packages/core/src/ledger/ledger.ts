import type { Check, CountedKey } from '../model/check.ts'
import { BoundedMap } from '../runtime/bounded-map.ts'
import { Alarm } from '../waiting/timers.ts'

/**
 * Accounts by policy and key for one kind of units that this process has admitted and the store has
 * not counted. Each kind has its own bound, so that a flood of strikes drops no debts.
 */
export abstract class Ledger<Account> extends BoundedMap<Account> {
  readonly #due = new Set<Account>()
  readonly #alarm: Alarm

  /**
   * @param mustStay returns whether an account is kept beyond the bound @default none
   * @param mayLose false if the process must not exit before it has reported what is due
   */
  constructor(bound: number, mustStay?: (account: Account) => boolean, mayLose = true) {
    super(bound, mustStay)
    this.#alarm = new Alarm(() => this.flushDue(), mayLose)
  }

  protected get hasDue(): boolean {
    return this.#due.size > 0
  }

  protected abstract open(check: Check): Account
  /** Reports an account's unreported units to the store, if there are any. */
  protected send(_account: Account): void {
    // For debts: those who take them pay them.
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

  /** Drops an account. Unreported units are lost. */
  drop(key: CountedKey): void {
    const account = this.find(key)
    if (account) this.#due.delete(account)
    this.delete(key.policy.id, key.key)
  }

  /** Reports an account to the store within `delayMs`, together with the others that are due. */
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
