import type { ClosedGrant, GrantTerms } from '../algorithms/grant.ts'
import type { GrantCounters } from '../model/store-health.ts'
import { hasPassed, later, type Moment, momentNow } from '../waiting/timers.ts'
import { LocalUnits } from './local-units.ts'

export class OwnGrant extends LocalUnits {
  readonly id: number
  readonly units: number
  /** Its end by both clocks. The earlier one counts. */
  readonly endsAt: Moment
  spent = 0
  /** True once nothing more is learned of it: the store has answered, or its end has passed. */
  isOver = false
  readonly #counters: GrantCounters

  constructor(id: number, units: number, endsAt: Moment, counters: GrantCounters) {
    super()
    this.#counters = counters
    this.id = id
    this.units = units
    this.endsAt = endsAt
  }

  get left(): number {
    return this.units - this.spent
  }

  /** False for a grant that was spent whole: the store records it by itself. */
  get mustBeSent(): boolean {
    return this.left > 0 || this.units === 0
  }

  hasEnded(now: Moment): boolean {
    return hasPassed(this.endsAt, now)
  }

  protected override get isFinal(): boolean {
    return this.isSent || this.hasEnded(momentNow())
  }

  protected override free(units: number): void {
    this.spent -= units
    this.#counters.spent -= units
  }
}

/** A grant that the store was asked for. */
interface PendingGrant {
  readonly id: number
  /** The end of the grant, counted from before the request was sent. */
  readonly endsAt: Moment
  readonly closed: readonly OwnGrant[]
}

/** The grants of one key at this process: all rules of who may spend what. */
export class Holding {
  /** The grants that may be spent, in the order in which they were taken. */
  open: OwnGrant[] = []
  /** Closed grants that the store has not confirmed. Nothing is spent of them any more. */
  closed: OwnGrant[] = []
  pending: PendingGrant | undefined = undefined
  readonly #counters: GrantCounters

  constructor(counters: GrantCounters) {
    this.#counters = counters
  }

  get left(): number {
    let left = 0
    for (const grant of this.open) left += grant.left
    return left
  }

  /** Spends units of one grant, and returns it; `undefined` when no grant has enough. */
  spend(units: number, now: Moment): OwnGrant | undefined {
    const grant = this.find(units, now)
    if (grant) grant.spent += units
    return grant
  }

  find(units: number, now: Moment): OwnGrant | undefined {
    for (const grant of this.open) if (grant.left >= units && !grant.hasEnded(now)) return grant
    return undefined
  }

  /**
   * Drops what has ended. The store records such a grant whole, so its unspent units are lost. That
   * holds also if nobody knows whether the store learned in time that it is closed.
   * @returns the number of unspent units
   */
  dropEnded(now: Moment): number {
    let lapsed = 0
    const lives = (grant: OwnGrant): boolean => {
      if (!grant.hasEnded(now)) return true
      if (!grant.isOver) lapsed += grant.left
      grant.isOver = true
      return false
    }
    // Most sweeps find nothing, and there may be many keys.
    if (!this.open.every(lives)) this.open = this.open.filter(lives)
    if (!this.closed.every(lives)) this.closed = this.closed.filter(lives)
    if (this.pending && hasPassed(this.pending.endsAt, now)) this.fail(this.pending.id)
    return lapsed
  }

  /** Closes the open grants that a condition holds for: their unspent units can come back. */
  close(mustClose: (grant: OwnGrant) => boolean): void {
    if (!this.open.some(mustClose)) return
    this.closed.push(...this.open.filter(mustClose))
    this.open = this.open.filter((grant) => !mustClose(grant))
  }

  /**
   * Notes that a call asks the store for a grant, and reports the closed ones. Call it before the
   * request is sent, with the time of that moment.
   * @param lifeMs the life of the grant at the store
   */
  request(id: number, lifeMs: number, now: Moment): Pick<GrantTerms, 'closed'> {
    const endsAt = ownEnd(lifeMs, now)
    for (const grant of this.closed) grant.isSent = true
    this.pending = { id, endsAt, closed: [...this.closed] }
    return { closed: this.closed.map((grant) => ({ id: grant.id, spent: grant.spent })) }
  }

  /** Finds the one closed grant that a receipt of the store would be for. */
  get soleSpent(): OwnGrant | undefined {
    const [grant, ...others] = this.closed.filter(({ spent }) => spent > 0)
    // The store may have recorded one that was reported before, at another time.
    return others.length === 0 && grant?.isSent === false ? grant : undefined
  }

  /**
   * Notes the answer of the store. An answer that nobody waits for any more changes nothing.
   * @returns the grant; `undefined` for none
   */
  answer(id: number, units: number, now: Moment): OwnGrant | undefined {
    const { pending } = this
    if (pending?.id !== id) return undefined
    this.pending = undefined
    this.closed = this.closed.filter((grant) => !pending.closed.includes(grant))
    if (units === 0) return undefined
    const grant = new OwnGrant(id, units, pending.endsAt, this.#counters)
    if (grant.hasEnded(now)) return undefined
    this.open.push(grant)
    return grant
  }

  /**
   * Notes that no answer has come. The store may have granted the units all the same, so they are
   * returned with the next request.
   */
  fail(id: number): void {
    if (this.pending?.id !== id) return
    this.closed.push(new OwnGrant(id, 0, this.pending.endsAt, this.#counters))
    this.pending = undefined
  }

  /**
   * Closes everything, for a reset of the key: units spent before count no more.
   * @returns the grants to return, with nothing spent
   */
  forget(): readonly ClosedGrant[] {
    if (this.pending) this.fail(this.pending.id)
    this.close(() => true)
    return this.closed.map(({ id }) => ({ id, spent: 0 }))
  }
}

/** The share by which the clock of the store may run faster than the clock of this process. */
const clockDrift = 0.01

/** Returns the end of a grant that the store is asked for now, as its process keeps it. */
export function ownEnd(lifeMs: number, now: Moment): Moment {
  return later(now, lifeMs - Math.max(2, Math.ceil(lifeMs * clockDrift)))
}
