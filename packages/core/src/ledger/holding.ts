import type { ClosedGrant, GrantTerms } from '../algorithms/grant.ts'
import type { GrantCounters } from '../model/store-health.ts'
import { hasPassed, later, type Moment, momentNow } from '../waiting/timers.ts'
import { LocalUnits } from './local-units.ts'

export class OwnGrant extends LocalUnits {
  readonly id: number
  readonly units: number
  /** Its end by both clocks, whichever comes first. */
  readonly endsAt: Moment
  spent = 0
  /** True once its fate is known: the store has answered, or the grant has ended. */
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

  /** False for a fully spent grant: the store records it on its own. */
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

/** A grant requested from the store. */
interface PendingGrant {
  readonly id: number
  /** The end of the grant, counted from before the request was sent. */
  readonly endsAt: Moment
  readonly closed: readonly OwnGrant[]
}

/** This process's grants for one key: all rules about who may spend what. */
export class Holding {
  /** Grants that may be spent, oldest first. */
  open: OwnGrant[] = []
  /** Closed grants that the store has not confirmed. They are no longer spent. */
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

  /** Spends units of one grant, and returns it; `undefined` if no grant has enough. */
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
   * Drops ended grants. The store records them as fully spent, unless it learned in time that they
   * were closed.
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

  /** Closes the open grants that meet a condition, so that their unspent units can return. */
  close(mustClose: (grant: OwnGrant) => boolean): void {
    if (!this.open.some(mustClose)) return
    this.closed.push(...this.open.filter(mustClose))
    this.open = this.open.filter((grant) => !mustClose(grant))
  }

  /**
   * Records a request for a grant, which reports the closed ones. Call it right before the request
   * is sent.
   * @param lifeMs lifetime of the grant in the store
   */
  request(id: number, lifeMs: number, now: Moment): Pick<GrantTerms, 'closed'> {
    const endsAt = ownEnd(lifeMs, now)
    for (const grant of this.closed) grant.isSent = true
    this.pending = { id, endsAt, closed: [...this.closed] }
    return { closed: this.closed.map((grant) => ({ id: grant.id, spent: grant.spent })) }
  }

  /** Returns the closed grant that the store's receipt would be for, if there is just one. */
  get soleSpent(): OwnGrant | undefined {
    const [grant, ...others] = this.closed.filter(({ spent }) => spent > 0)
    // If it was reported before, the store may have recorded it at another time.
    return others.length === 0 && grant?.isSent === false ? grant : undefined
  }

  /**
   * Records the store's answer. An outdated answer changes nothing.
   * @returns the grant, if there is one
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

  /** Records a missing answer. The store may have made the grant: the next request returns it. */
  fail(id: number): void {
    if (this.pending?.id !== id) return
    this.closed.push(new OwnGrant(id, 0, this.pending.endsAt, this.#counters))
    this.pending = undefined
  }

  /**
   * Closes everything for a reset of the key. Units spent before it no longer count.
   * @returns the grants to return, with nothing spent
   */
  forget(): readonly ClosedGrant[] {
    if (this.pending) this.fail(this.pending.id)
    this.close(() => true)
    return this.closed.map(({ id }) => ({ id, spent: 0 }))
  }
}

/** Share by which the store's clock may run faster than this process's clock. */
const clockDrift = 0.01

/** Returns when this process stops spending a grant that it requests now. */
export function ownEnd(lifeMs: number, now: Moment): Moment {
  return later(now, lifeMs - Math.max(2, Math.ceil(lifeMs * clockDrift)))
}
