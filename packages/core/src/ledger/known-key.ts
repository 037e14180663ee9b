import { algorithmOf } from '../algorithms/table.ts'
import { admittedOutcome } from '../engine/outcome.ts'
import type { Check, Receipt } from '../model/check.ts'
import type { Outcome } from '../model/store.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { LocalUnits, type StoreWay } from './local-units.ts'

export class UncountedBatch extends LocalUnits {
  /** The check with the largest limit of the requests. */
  check: Check
  units = 0
  /** Time at which the store was told, in ms of the monotonic clock. */
  toldAtMs = 0
  readonly #key: KnownKey

  constructor(key: KnownKey, check: Check) {
    super()
    this.#key = key
    this.check = check
  }

  protected override free(units: number): void {
    this.units -= units
    this.#key.uncounted -= units
  }
}

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
  /** The way of the last limiter that used the key. */
  way: StoreWay | undefined = undefined
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

  /** Units that the store was not told of. */
  get untold(): number {
    return this.#open?.units ?? 0
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

  take(check: Check): UncountedBatch {
    this.#open ??= new UncountedBatch(this, check)
    // Under a smaller limit, the store would keep less than was admitted.
    if (check.limit > this.#open.check.limit) this.#open.check = check
    this.#open.units += check.cost
    this.uncounted += check.cost
    return this.#open
  }

  /** Notes that the store is asked. Returns the number of the question. */
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

  /**
   * Notes the answer to a batch. Without one it is a debt, and counts as uncounted until the debt
   * is paid or has expired.
   */
  answered(batch: UncountedBatch, number: number, outcome: Outcome | undefined): void {
    this.awaited -= 1
    if (outcome) this.uncounted -= batch.units
    else this.#owed.push(batch)
    // Nobody knows whether an answer that came earlier was given before or after this charge.
    if (!outcome || (this.#last && number < this.#last.number)) this.forget()
    else this.learn(number, outcome)
  }

  /** Lets go of debts that were paid, or of which nothing counts any more. */
  settleDebts(isPaid: (receipt: Receipt) => boolean): void {
    if (this.#owed.length === 0) return
    const nowMs = monotonicMs()
    const left = this.#owed.filter(({ recorded, toldAtMs, check: { policy } }) => {
      const isOver = recorded !== undefined && isPaid(recorded)
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
