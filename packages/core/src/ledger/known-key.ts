import { algorithmOf } from '../algorithms/table.ts'
import { admittedOutcome } from '../engine/outcome.ts'
import {
  type ChangeAtStore,
  type Check,
  giveBack,
  type Held,
  type Home,
  type Receipt,
} from '../model/check.ts'
import type { Outcome } from '../model/store.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'

/** Units of one key that are counted by one charge. */
export class UncountedBatch implements Home {
  /** The check with the largest limit of the requests. */
  check: Check
  units = 0
  /** True once the store was told: the number of units is final. */
  isTold = false
  /** The charge, as soon as there is one: at the store, or here while the store is away. */
  charge: Receipt | undefined = undefined
  /** Units that were given back between the call and its answer. */
  lateUnits = 0
  /** Time at which the store was told, in ms of the monotonic clock. */
  toldAtMs = 0
  readonly #key: KnownKey

  constructor(key: KnownKey, check: Check) {
    this.#key = key
    this.check = check
  }

  /** While the answer to the charge is awaited, units wait for it, and come back after it. */
  giveBack(held: Held, changeAtStore: ChangeAtStore): MaybePromise<boolean> {
    const { charge } = this
    if (charge) return giveBack({ ...held, receipt: charge }, changeAtStore)
    if (this.isTold) {
      this.lateUnits += held.cost
      return false
    }
    this.units -= held.cost
    this.#key.uncounted -= held.cost
    return true
  }
}

/** An answer of the store about a key, and when it was asked. */
interface LastAnswer {
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number
  /** The number of the question: later questions have higher numbers. */
  readonly number: number
  readonly atMs: number
}

/** The last known state of a key, and the units that this process took since. */
export class KnownKey {
  /** Units that were admitted here, and of which the store has not said that it counts them. */
  uncounted = 0
  /** The most of them, by the last request that the store was asked about. */
  maxUncounted = 0
  /** The number of charges that are not answered. */
  awaited = 0
  /** Units that the store was not told of. */
  #open: UncountedBatch | undefined
  /** Batches whose charge the store has not answered in time: they are debts. */
  #owed: UncountedBatch[] = []
  #last: LastAnswer | undefined
  /** The number of questions so far. */
  #questions = 0
  /** Answers to questions up to this number are too old to be learned. */
  #forgotten = 0

  /** True if the store was not told of some units. */
  get hasUntold(): boolean {
    return this.#open !== undefined && this.#open.units > 0
  }

  /** True if these are half of `maxUncounted`. */
  get isHalfFull(): boolean {
    return this.#open !== undefined && 2 * this.#open.units >= this.#open.check.policy.maxUncounted
  }

  /**
   * Answers a check by the last known state, without taking anything; `undefined` when the store
   * has to be asked.
   */
  answer(check: Check): Outcome | undefined {
    const last = this.#last
    const { cost, limit, policy } = check
    if (!last || last.limit !== limit || limit === 0) return undefined
    const elapsedMs = monotonicMs() - last.atMs
    // Of what was known a window ago, nothing counts any more.
    if (elapsedMs >= policy.windowMs) return undefined
    if (this.uncounted + cost > policy.maxUncounted) return undefined
    const remaining = last.remaining - this.uncounted
    if (remaining < cost) return undefined
    return admittedOutcome(check, { remaining, resetMs: last.resetMs - elapsedMs })
  }

  /** Takes units on the last known state. */
  take(check: Check): UncountedBatch {
    this.#open ??= new UncountedBatch(this, check)
    // Under a smaller limit, the store would keep less than was admitted.
    if (check.limit > this.#open.check.limit) this.#open.check = check
    this.#open.units += check.cost
    this.uncounted += check.cost
    return this.#open
  }

  /** Notes that the store is asked about the key. Returns the number of the question. */
  ask(): number {
    this.#questions += 1
    return this.#questions
  }

  /** Takes the open batch out, to be told to the store. */
  tell(): UncountedBatch | undefined {
    const batch = this.#open
    this.#open = undefined
    if (!batch || batch.units === 0) return undefined
    batch.isTold = true
    batch.toldAtMs = monotonicMs()
    this.awaited += 1
    return batch
  }

  /** Learns the state of the key from an answer, unless a later answer is known. */
  learn(number: number, { limit, remaining, resetMs }: Outcome): void {
    if (remaining === undefined || number <= this.#forgotten) return
    if (this.#last && number < this.#last.number) return
    this.#last = { limit, remaining, resetMs: resetMs ?? 0, number, atMs: monotonicMs() }
  }

  /** Notes that the store counts a batch. */
  confirm(batch: UncountedBatch, number: number, outcome: Outcome): void {
    this.awaited -= 1
    this.uncounted -= batch.units
    // Nobody knows whether an answer that came earlier was given before or after this charge.
    if (this.#last && number < this.#last.number) this.forget()
    else this.learn(number, outcome)
  }

  /** Notes that a batch is a debt. It counts as uncounted until it is paid, or has expired. */
  owe(batch: UncountedBatch): void {
    this.awaited -= 1
    this.#owed.push(batch)
    this.forget()
  }

  /** Lets go of debts that were paid, or of which nothing counts any more. */
  settleDebts(isPaid: (receipt: Receipt) => boolean): void {
    if (this.#owed.length === 0) return
    const nowMs = monotonicMs()
    const left = this.#owed.filter(({ charge, toldAtMs, check: { policy } }) => {
      const isOver = charge !== undefined && isPaid(charge)
      return !isOver && nowMs - toldAtMs < algorithmOf(policy).lifeMs(policy)
    })
    if (left.length === this.#owed.length) return
    for (const { units } of this.#owed) this.uncounted -= units
    for (const { units } of left) this.uncounted += units
    this.#owed = left
    this.forget()
  }

  /** Forgets the state. Answers that are awaited will not be learned either. */
  forget(): void {
    this.#last = undefined
    this.#forgotten = this.#questions
  }
}
