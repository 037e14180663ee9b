import { admittedOutcome } from '../engine/outcome.ts'
import { randomId } from '../ledger/grants.ts'
import { hasPassed, later, type Moment, momentNow, ownEnd } from '../ledger/holding.ts'
import { type Check, type GrantCheck, giveBack, type Receipt } from '../model/check.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { Granted } from '../model/store.ts'
import { inTime } from '../resilience/deadlines.ts'
import type { Caller } from '../resilience/pending-ask.ts'
import { isPromise } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'

/** Number of grants of a pool from which on its calls ask for more units than are needed. */
const fewGrants = 8

/** Units of one grant of the store, or units that were counted when they were reserved. */
class Units {
  /** The id of the grant; `undefined` for units that are counted already. */
  readonly grant: number | undefined
  readonly receipt: Receipt | undefined
  left: number
  /** Units that were spent since the store was last told. */
  spent = 0
  /** Units that were given up since then. Of units that are counted already: all of them. */
  freed = 0
  /** The units may be spent before this moment. `undefined`: for ever. */
  endsAt: Moment | undefined

  constructor(left: number, { grant, receipt, endsAt }: Partial<Pick<Units, OfUnits>>) {
    this.left = left
    this.grant = grant
    this.receipt = receipt
    this.endsAt = endsAt
  }

  /** Notes that the store is told of all that was spent or given up. */
  tell(): void {
    this.spent = 0
    this.freed = 0
  }

  get hasEnded(): boolean {
    const { endsAt } = this
    if (!endsAt) return false
    return monotonicMs() >= endsAt.monotonicMs || Date.now() >= endsAt.wallMs
  }
}

type OfUnits = 'grant' | 'receipt' | 'endsAt'

interface Waiting {
  readonly check: Check
  readonly resolve: (decision: Decision | Promise<Decision | undefined> | undefined) => void
}

/**
 * The units of one key that work of this process has reserved. They are units of a few grants,
 * which all calls for the key renew. So work may last longer than any grant.
 */
export class Pool {
  readonly #isAway: () => boolean
  /** The limiter that used the pool last, and its check. */
  #caller: Caller
  #check: Check
  /** Units that reservations hold, and have not spent. */
  #assigned = 0
  /** The units that may be spent, in the order in which they came. */
  #units: Units[] = []
  /** Grants that were spent whole, until the store is told. */
  #spent: Units[] = []
  /** Grants that the store may have made, and that nobody spends. */
  #lost: { readonly id: number; readonly endsAt: Moment }[] = []
  #waiting: Waiting[] = []
  #refunds: Promise<unknown>[] = []
  #lastAnswer: Granted | undefined
  /** Reservations that may still ask for units, and calls that are under way. */
  #users = 0
  /** The call that is under way or was the last one, and the one after it. */
  #call: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(check: Check, caller: Caller, isAway: () => boolean) {
    this.#check = check
    this.#caller = caller
    this.#isAway = isAway
  }

  /**
   * Reserves the units of a check. Resolves to the decision that admits them, or to `undefined` if
   * there is no room for all of them.
   */
  async obtain(check: Check, caller: Caller): Promise<Decision | undefined> {
    this.#check = check
    this.#caller = caller
    if (check.cost > check.limit) return undefined
    if (!isHeld(check)) return this.#count(check)
    this.#dropEnded()
    if (this.#spare >= check.cost) return this.#assign(check)
    return new Promise((resolve) => {
      this.#waiting.push({ check, resolve })
      void this.flush()
    })
  }

  /** Keeps the pool, which renews its grants, until `leave`. */
  join(): void {
    this.#users += 1
  }

  leave(): void {
    this.#users -= 1
  }

  /** Tells whether so many units may be spent at this moment. */
  has(units: number): boolean {
    const [first] = this.#units
    if (first && first.left >= units && !first.hasEnded) return true
    this.#dropEnded()
    return this.#left >= units
  }

  /** Spends units of a reservation. Call it right after `has`. */
  spend(units: number): void {
    this.#assigned -= units
    let rest = units
    for (let first = this.#units[0]; first && rest > 0; first = this.#units[0]) {
      const some = Math.min(first.left, rest)
      first.left -= some
      first.spent += some
      rest -= some
      if (first.left > 0) return
      this.#units.shift()
      this.#spent.push(first)
    }
  }

  /** Gives up units of a reservation. Resolves when the store was told of all spent units. */
  release(units: number): Promise<void> {
    this.#assigned -= units
    return this.flush()
  }

  /** Gives up all units, whoever has reserved them. */
  close(): Promise<void> {
    return this.release(this.#assigned)
  }

  /** Renews grants after half of their life. Returns false for a pool without units. */
  sweep(now: Moment): boolean {
    this.#dropEnded()
    const units = this.#units.length + this.#spent.length + this.#lost.length
    if (units + this.#assigned + this.#users === 0) return false
    const soon = later(now, this.#check.policy.reserveMs / 2)
    const isDue = ({ endsAt }: Units) => endsAt !== undefined && hasPassed(endsAt, soon)
    const mustTell = this.#units.some(isDue) || this.#spent.some(isDue)
    if (mustTell || this.#spare < 0) void this.flush()
    return true
  }

  /** Tells the store, by a call that begins after this moment. Never rejects. */
  flush(): Promise<void> {
    this.#next ??= this.#after(this.#call)
    return this.#next
  }

  async #after(call: Promise<void> | undefined): Promise<void> {
    this.join()
    // All work of this turn goes into one call.
    await call
    this.#next = undefined
    this.#call = this.#send()
    await this.#call
    this.leave()
  }

  get #left(): number {
    let left = 0
    for (const each of this.#units) left += each.left
    return left
  }

  /** Units that nobody has reserved; below 0 if reserved units have lapsed. */
  get #spare(): number {
    return this.#left - this.#assigned
  }

  /** Spare units that the pool keeps: with many grants, each new one must not be too small. */
  get #kept(): number {
    return this.#units.length < fewGrants || !isHeld(this.#check)
      ? 0
      : Math.ceil(this.#assigned / fewGrants)
  }

  /** The store counts ended grants as spent. */
  #dropEnded(): void {
    const lives = (each: Units): boolean => !each.hasEnded
    if (!this.#units.every(lives)) this.#units = this.#units.filter(lives)
    if (!this.#spent.every(lives)) this.#spent = this.#spent.filter(lives)
    if (this.#lost.length === 0) return
    const now = momentNow()
    this.#lost = this.#lost.filter(({ endsAt }) => !hasPassed(endsAt, now))
  }

  /** The youngest units go first, so that old grants are spent whole. */
  #giveUpSpare(): void {
    let rest = this.#spare - this.#kept
    for (const each of this.#units.toReversed()) {
      if (rest <= 0) return
      const some = Math.min(each.left, rest)
      each.left -= some
      rest -= some
      this.#giveUp(each, some)
    }
  }

  #giveUp(units: Units, count: number): void {
    const { receipt, freed } = units
    units.freed += count
    if (!receipt) return
    const held = { ...receipt.check, cost: count, receipt, refunded: freed }
    this.#refunds.push(Promise.resolve(giveBack(held, this.#caller.change)))
  }

  #assign(check: Check): Decision {
    this.#assigned += check.cost
    const { remaining = 0, resetMs = 0 } = this.#lastAnswer ?? {}
    const outcome = admittedOutcome(check, { remaining: remaining + this.#spare, resetMs })
    return decisionOf([outcome], [check], 'store')
  }

  /** Takes units that are counted at once: in a fixed window, or by the failure mode. */
  async #count(check: Check): Promise<Decision | undefined> {
    const decision = await this.#caller.decide('consume', [check])
    const { allowed, source, outcomes } = decision
    if (!allowed) return undefined
    const receipt = outcomes[0]?.receipt
    // The store is back. In its log, the units would be older than the work that spends them.
    if (isHeld(check) && source === 'store') {
      if (receipt) await giveBack({ ...check, receipt }, this.#caller.change)
      return undefined
    }
    this.#assigned += check.cost
    this.#units.push(new Units(check.cost, { receipt }))
    // The pool alone gives the units back.
    const without = outcomes.map((outcome) => ({ ...outcome, receipt: undefined }))
    return { ...decision, outcomes: without }
  }

  async #send(): Promise<void> {
    this.#dropEnded()
    this.#giveUpSpare()
    const refunds = this.#refunds.splice(0)
    const waiting = this.#waiting.splice(0)
    let wanted = this.#kept - this.#spare
    for (const { check } of waiting) wanted += check.cost
    const isGranted = await this.#ask(Math.max(0, wanted))
    if (isGranted) this.#serve(waiting)
    else await this.#serveWithout(waiting)
    await Promise.all(refunds)
  }

  /** Renews the grants, and takes another one. Returns false if the store is away. */
  async #ask(wanted: number): Promise<boolean> {
    const all = [...this.#spent, ...this.#units]
    const held = all.filter(({ grant }) => grant !== undefined)
    const lost = [...this.#lost]
    if (wanted + held.length + lost.length === 0) return true
    if (this.#isAway()) return false
    this.#spent = []
    this.#units = this.#units.filter(({ left }) => left > 0)
    const now = momentNow()
    const { policy } = this.#check
    const endsAt = ownEnd(policy.reserveMs, now)
    const id = randomId()
    const closed = lost.map((grant) => ({ id: grant.id, spent: 0 }))
    const kept = held.map(({ grant = 0, left, freed }) => ({ id: grant, left, freed }))
    const terms = { id, lifeMs: policy.reserveMs, divisor: 1, closed, kept }
    // With units that come back, the key may be denied no more.
    const isReturning = lost.length > 0 || kept.some(({ freed }) => freed > 0)
    for (const each of held) each.tell()
    let answer: Granted | undefined
    try {
      answer = await this.#grant({ ...this.#check, cost: wanted, terms }, isReturning)
    } catch {
      // The failure mode asks the store again, and finds out why it failed.
      this.#lost.push({ id, endsAt })
      return false
    }
    this.#lost = this.#lost.filter((grant) => !lost.includes(grant))
    // A grant that ended before the answer came may have lapsed at the store before the call.
    this.#dropEnded()
    for (const each of held) each.endsAt = endsAt
    this.#lastAnswer = answer
    const { units = 0 } = answer ?? {}
    if (units > 0) this.#units.push(new Units(units, { grant: id, endsAt }))
    this.#dropEnded()
    return true
  }

  async #grant(check: GrantCheck, isReturning: boolean): Promise<Granted | undefined> {
    const { store, deadlines, grant } = this.#caller
    const answers = isReturning ? grant([check]) : (store.grant?.([check]) ?? [])
    const [answer] = isPromise(answers)
      ? await inTime(answers, deadlines, () => undefined)
      : answers
    return answer
  }

  #serve(waiting: readonly Waiting[]): void {
    const denied: Waiting[] = []
    for (const one of waiting) {
      if (this.#spare < one.check.cost) denied.push(one)
      else one.resolve(this.#assign(one.check))
    }
    // Units that are too few for a reservation go back at once, so that others can take them.
    const isReturned = this.#spare > this.#kept ? this.flush() : undefined
    for (const { resolve } of denied) resolve(isReturned?.then(() => undefined))
  }

  /** The failure mode decides, also about reserved units that have lapsed. */
  async #serveWithout(waiting: readonly Waiting[]): Promise<void> {
    for (const { check, resolve } of waiting) resolve(this.#count(check))
    const lapsed = -this.#spare
    if (lapsed <= 0) return
    if (await this.#count({ ...this.#check, cost: lapsed })) this.#assigned -= lapsed
  }
}

/** Tells whether the store counts the units of a check beside its log while they are reserved. */
function isHeld({ policy }: Check): boolean {
  return policy.counting !== policy.algorithm
}
