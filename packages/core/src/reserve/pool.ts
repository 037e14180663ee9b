import { admittedOutcome, unknownOutcome } from '../engine/outcome.ts'
import { randomId } from '../ledger/grants.ts'
import { ownEnd } from '../ledger/holding.ts'
import type { Check } from '../model/check.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { Granted } from '../model/store.ts'
import type { Caller } from '../resilience/caller.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { hasPassed, later, type Moment, momentNow, monotonicMs } from '../waiting/timers.ts'
import { giveUpLast, takeOut, type Units } from './units.ts'

/** From this many grants or reservations, a call requests spare units, to serve several at once. */
const few = { grants: 8, users: 2 }

/** Parts of a grant's lifetime after which the process checks whether to renew it. */
const looksPerLife = 8

interface Waiting {
  readonly check: Check
  readonly request: object
  readonly resolve: (decision: MaybePromise<Decision | undefined>) => void
}

/**
 * The units of one key under one limit that this limiter has reserved. They come from a few grants,
 * which every call for the key renews. So work may outlast any grant.
 */
export class Pool {
  readonly lookMs: number
  /** Reservations that may still request units. */
  users = 0
  readonly #caller: Caller
  readonly #check: Check
  /** Unspent units held by reservations. */
  #assigned = 0
  /** The units that may be spent, in order of arrival. */
  #units: Units[] = []
  /** Fully spent grants, until the store knows. */
  #spent: Units[] = []
  /** Grants that the store may have made, but that nobody spends. */
  #lost: { readonly id: number; readonly endsAt: Moment }[] = []
  #waiting: Waiting[] = []
  #lastAnswer: Granted | undefined
  #answeredAtMs = 0
  /** Calls in flight, or waiting for one. */
  #calls = 0
  /** The current or last call, and the next one. */
  #call: Promise<void> | undefined
  #next: Promise<void> | undefined
  /** Between these times of the wall clock, all units may be spent. */
  #sureFromMs = 0
  #sureUntilMs = 0

  constructor(check: Check, caller: Caller) {
    this.#check = check
    this.#caller = caller
    this.lookMs = Math.max(1, check.policy.reserveMs / looksPerLife)
  }

  /** Resolves to the decision that admits a check, or to `undefined` if there is no room. */
  async obtain(check: Check, request: object): Promise<Decision | undefined> {
    if (check.cost > check.limit || check.limit === 0) return undefined
    this.#dropEnded()
    if (this.#spare >= check.cost) return this.#assign(check)
    if (this.#caller.denials?.denies(check)) return undefined
    return new Promise((resolve) => {
      this.#waiting.push({ check, request, resolve })
      void this.flush()
    })
  }

  /**
   * Reads one clock, since two cost twice as much. The wall clock runs while the machine is
   * suspended. As it may step back, both clocks are read at each check, when a step is seen, and
   * near the end of the units.
   */
  has(units: number): boolean {
    const first = this.#units[0]
    const wallMs = Date.now()
    const isSure = wallMs >= this.#sureFromMs && wallMs < this.#sureUntilMs
    if (isSure && first !== undefined && first.left >= units) return true
    this.#dropEnded()
    return leftOf(this.#units) >= units
  }

  spend(units: number): void {
    this.#assigned -= units
    let rest = units
    for (let first = this.#units[0]; first && rest > 0; first = this.#units[0]) {
      const some = Math.min(first.left, rest)
      first.left -= some
      rest -= some
      if (first.left > 0) return
      this.#units.shift()
      if (!isCounted(first)) this.#spent.push(first)
    }
  }

  release(units: number): Promise<unknown> {
    this.#assigned -= units
    const isShared = this.users > 1 && this.#excess === 0
    return isShared ? Promise.resolve() : this.flush()
  }

  /** Renews grants after half of their lifetime. Returns false for a pool without units. */
  sweep(now: Moment): boolean {
    this.#dropEnded()
    const units = this.#units.length + this.#spent.length + this.#lost.length
    if (units + this.#assigned + this.users + this.#calls === 0) return false
    const soon = later(now, this.#check.policy.reserveMs / 2)
    const isDue = ({ endsAt }: Units) => endsAt !== undefined && hasPassed(endsAt, soon)
    const mustTell = [...this.#units, ...this.#spent].some(isDue) || this.#lost.length > 0
    if (mustTell || this.#spare < 0 || this.#excess > 0) void this.flush()
    return true
  }

  /** Reports to the store, with a call that starts after this moment. Never rejects. */
  flush(): Promise<void> {
    this.#next ??= this.#after(this.#call)
    return this.#next
  }

  async #after(call: Promise<void> | undefined): Promise<void> {
    this.#calls += 1
    // All work of this turn goes into one call.
    await call
    this.#next = undefined
    this.#call = this.#send()
    await this.#call
    this.#calls -= 1
  }

  /** Unreserved units; below 0 if reserved units have lapsed. */
  get #spare(): number {
    return leftOf(this.#units) - this.#assigned
  }

  /** Number of spare units that a call requests. */
  get #kept(): number {
    if (this.#units.length >= few.grants) return Math.ceil(this.#assigned / few.grants)
    if (this.users < few.users) return 0
    return Math.floor(Math.min(this.#assigned / 2, this.#check.limit / 400))
  }

  /** Number of spare units to return: the pool keeps up to twice what it requests. */
  get #excess(): number {
    return this.#spare > 2 * this.#kept ? this.#spare - this.#kept : 0
  }

  /** The store counts ended grants as spent. Units that it has not granted go back. */
  #dropEnded(): void {
    const now = momentNow()
    const hasEnded = ({ endsAt }: Pick<Units, 'endsAt'>) => endsAt && hasPassed(endsAt, now)
    if (this.#units.some(hasEnded)) this.#drop(hasEnded)
    if (this.#spent.some(hasEnded)) this.#spent = this.#spent.filter((each) => !hasEnded(each))
    if (this.#lost.some(hasEnded)) this.#lost = this.#lost.filter((each) => !hasEnded(each))
    // A step back that is smaller than the time between two checks is not detected.
    let sureMs = this.#units.length === 0 ? 0 : Number.POSITIVE_INFINITY
    for (const { endsAt = now } of this.#units) {
      const { monotonicMs, wallMs } = endsAt
      sureMs = Math.min(sureMs, monotonicMs - now.monotonicMs, wallMs - now.wallMs)
    }
    this.#sureFromMs = now.wallMs
    this.#sureUntilMs = now.wallMs + sureMs - this.lookMs
  }

  /** Drops the units for which a condition holds. Returns the number of unspent ones. */
  #drop(mustDrop: (units: Units) => unknown): number {
    const dropped = this.#units.filter(mustDrop)
    this.#units = this.#units.filter((units) => !mustDrop(units))
    const left = leftOf(dropped)
    giveUpLast(dropped, left, this.#caller.change)
    return left
  }

  #assign(check: Check): Decision {
    this.#assigned += check.cost
    const { remaining = 0, resetMs = 0 } = this.#lastAnswer ?? {}
    const elapsedMs = monotonicMs() - this.#answeredAtMs
    const known = { remaining: remaining + this.#spare, resetMs: resetMs - elapsedMs }
    // Without units, no call was made.
    const outcome = this.#lastAnswer ? admittedOutcome(check, known) : unknownOutcome(check)
    return decisionOf([outcome], [check], 'store')
  }

  async #send(): Promise<void> {
    const waiting = this.#waiting.splice(0)
    let failure: unknown
    try {
      this.#dropEnded()
      giveUpLast(this.#units, this.#excess, this.#caller.change)
      let wanted = this.#kept - this.#spare
      for (const { check } of waiting) wanted += check.cost
      // Grants replace the units that the failure mode has admitted.
      const counted = leftOf(this.#units.filter(isCounted))
      if (await this.#ask(Math.max(0, wanted) + counted)) return this.#serve(waiting)
    } catch (error) {
      failure = error
    }
    // Reservations that arrived meanwhile waited for the same call.
    this.#serveWithout([...waiting, ...this.#waiting.splice(0)], failure)
  }

  /** Renews the grants, and takes another one. Returns false if the store must not be called. */
  async #ask(wanted: number): Promise<boolean> {
    const held = [...this.#spent, ...this.#units].filter((units) => !isCounted(units))
    const lost = [...this.#lost]
    if (wanted + held.length + lost.length === 0) return true
    if (!this.#caller.mayAsk([this.#check])) return false
    this.#spent = []
    this.#units = this.#units.filter(({ left }) => left > 0)
    const { reserveMs: lifeMs } = this.#check.policy
    const endsAt = ownEnd(lifeMs, momentNow())
    const id = randomId()
    const closed = lost.map((grant) => ({ id: grant.id, spent: 0 }))
    const kept = held.map(({ grant = 0, left, freed }) => ({ id: grant, left, freed }))
    // With returned units, the key may no longer be denied.
    const isReturning = lost.length > 0 || kept.some(({ freed }) => freed > 0)
    for (const each of held) each.freed = 0
    const terms = { id, lifeMs, divisor: 1, closed, kept }
    const asking = this.#caller.hold({ ...this.#check, cost: wanted, terms }, isReturning)
    // Without an answer, the store may have made the grant.
    asking.catch(() => this.#lost.push({ id, endsAt }))
    const answer = await asking
    const { units = 0 } = answer ?? {}
    this.#lost = this.#lost.filter((grant) => !lost.includes(grant))
    // A grant that ended before the answer came may have lapsed at the store before the call.
    this.#dropEnded()
    for (const each of held) each.endsAt = endsAt
    this.#lastAnswer = answer
    this.#answeredAtMs = monotonicMs()
    if (units > 0) this.#units.push({ grant: id, left: units, freed: 0, endsAt })
    // Units of the failure mode come last, and so go back first.
    this.#units.sort((a, b) => Number(isCounted(a)) - Number(isCounted(b)))
    this.#dropEnded()
    return true
  }

  #serve(waiting: readonly Waiting[]): void {
    const denied: Waiting[] = []
    for (const one of waiting) {
      if (this.#spare < one.check.cost) denied.push(one)
      else one.resolve(this.#assign(one.check))
    }
    // Units that are too few for a reservation go back at once, so that others can take them.
    const isReturned = this.#excess > 0 ? this.flush() : undefined
    for (const { resolve } of denied) resolve(isReturned?.then(() => undefined))
  }

  /** The failure mode decides, also about the rest of its own units and lapsed ones. */
  #serveWithout(waiting: readonly Waiting[], failure: unknown): void {
    const lapsed = -this.#spare
    const own = this.#drop(isCounted)
    for (const cost of [own, lapsed]) {
      // The next call requests units again that are denied now.
      if (cost > 0) this.#admit({ ...this.#check, cost }, {}, undefined).catch(() => undefined)
    }
    for (const { check, request, resolve } of waiting) {
      const before = leftOf(this.#units)
      resolve(this.#admit(check, request, failure))
      this.#assigned += leftOf(this.#units) - before
    }
  }

  async #admit(check: Check, request: object, failure: unknown): Promise<Decision | undefined> {
    const decided = this.#caller.decideWithout(check, request, failure)
    if (!decided.allowed) return undefined
    const endsAt = ownEnd(check.policy.reserveMs, momentNow())
    const { units, decision } = takeOut(decided, check.cost, endsAt)
    this.#units.push(units)
    return decision
  }
}

function isCounted({ grant }: Units): boolean {
  return grant === undefined
}

function leftOf(all: readonly Units[]): number {
  let left = 0
  for (const each of all) left += each.left
  return left
}
