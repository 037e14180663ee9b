import type { Check } from '../model/check.ts'
import { BoundedMap } from '../runtime/bounded-map.ts'
import { Alarm } from '../waiting/timers.ts'

/** A kind of units that this process has admitted, and that the store has not counted. */
export interface AccountKind<Account> {
  /**
   * Number of keys whose accounts are surely kept. Each kind has a bound of its own, so that a
   * flood of strikes forgets no debt.
   */
  readonly bound: number
  open(check: Check): Account
  /** Tells whether an account must outlive the bound. @default none */
  mustStay?(account: Account): boolean
  /** Tells the store of the units of an account that it does not know of, if there are some. */
  tell?(account: Account): void
  /** False if the process must not end before the store is told what is due. @default true */
  readonly mayLose?: boolean
}

/** The accounts of one kind, by policy and key. */
export class Ledger<Account> {
  readonly #kind: AccountKind<Account>
  readonly #accounts: BoundedMap<Account>
  readonly #due = new Set<Account>()
  readonly #alarm: Alarm

  constructor(kind: AccountKind<Account>) {
    this.#kind = kind
    this.#accounts = new BoundedMap(kind.bound, kind.mustStay)
    this.#alarm = new Alarm(() => this.tellDue(), kind.mayLose)
  }

  get size(): number {
    return this.#accounts.size
  }

  get hasDue(): boolean {
    return this.#due.size > 0
  }

  find({ policy, key }: Check): Account | undefined {
    return this.#accounts.get(policy.id, key)
  }

  of(check: Check): Account {
    const known = this.find(check)
    if (known) return known
    const account = this.#kind.open(check)
    this.#accounts.set(check.policy.id, check.key, account)
    return account
  }

  values(): Iterable<Account> {
    return this.#accounts.values()
  }

  /** Drops an account. What it has not told is lost. */
  delete(check: Check): void {
    const account = this.find(check)
    if (account) this.#due.delete(account)
    this.#accounts.delete(check.policy.id, check.key)
  }

  /** Tells the store of an account within `delayMs`, together with the others that are due. */
  tellWithin(delayMs: number, account: Account): void {
    if (this.#due.has(account)) return
    this.#due.add(account)
    if (this.#due.size >= this.#kind.bound) this.tellDue()
    else this.#alarm.within(delayMs)
  }

  tell(account: Account): void {
    this.#due.delete(account)
    this.#kind.tell?.(account)
  }

  /** Tells the store of all accounts that are due. */
  tellDue(): void {
    this.#alarm.stop()
    for (const account of [...this.#due]) this.tell(account)
  }
}
