import { algorithmOf } from '../algorithms/table.ts'
import { admittedOutcome, type CheckOutcome } from '../engine/outcome.ts'
import { type Check, type CountedKey, Receipt } from '../model/check.ts'
import { type Decider, decisionOf } from '../model/decision.ts'
import type { DecidingOp, Outcome } from '../model/store.ts'
import type { StoreHealth } from '../model/store-health.ts'
import { andThen, promised } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../waiting/timers.ts'
import { Ledger } from './ledger.ts'
import { LocalUnits, type StoreWay } from './local-units.ts'

/** Units of a key that one charge reports to the store. */
class Batch extends LocalUnits {
  /** The check with the largest limit of the requests. */
  check: Check
  units = 0
  /** Time at which they were reported to the store, in ms of the monotonic clock. */
  sentAtMs = 0
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

interface LastAnswer extends Pick<Outcome, 'limit'> {
  readonly remaining: number
  readonly resetMs: number
  /** The number of the question: later questions have higher numbers. */
  readonly number: number
  readonly atMs: number
}

/** The last known state of a key, and the units that this process took since. */
class KnownKey {
  /** The way of the last limiter that used the key. */
  way: StoreWay | undefined = undefined
  /** Units that were admitted here, and of which the store has not said that it counts them. */
  uncounted = 0
  /** The most of them, by the last request that the store was asked about. */
  maxUncounted = 0
  /** The number of charges that are not answered. */
  awaited = 0
  /** Units that were not reported to the store. */
  #open: Batch | undefined
  /** Batches whose charge the store has not answered in time: they are debts. */
  #owed: Batch[] = []
  #last: LastAnswer | undefined
  /** The number of questions so far. */
  #questions = 0
  /** Answers to questions up to this number are too old to be learned. */
  #forgotten = 0

  /** Units that were not reported to the store. */
  get unsent(): number {
    return this.#open?.units ?? 0
  }

  /**
   * Answers a check by the last known state, without taking anything; `undefined` when the store
   * has to be asked.
   */
  answer(check: Check): CheckOutcome | undefined {
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

  take(check: Check): Batch {
    this.#open ??= new Batch(this, check)
    // Under a smaller limit, the store would keep less than was admitted.
    if (check.limit > this.#open.check.limit) this.#open.check = check
    this.#open.units += check.cost
    this.uncounted += check.cost
    return this.#open
  }

  /** Notes that the store is asked. Returns the number of the question. */
  nextQuestion(): number {
    this.#questions += 1
    return this.#questions
  }

  /** Takes the open batch out, to be sent to the store. */
  takeBatch(): Batch | undefined {
    const batch = this.#open
    this.#open = undefined
    if (!batch || batch.units === 0) return undefined
    batch.isSent = true
    batch.sentAtMs = monotonicMs()
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
  answered(batch: Batch, number: number, outcome: Outcome | undefined): void {
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
    const left = this.#owed.filter(({ recorded, sentAtMs, check: { policy }, units }) => {
      const isOwed =
        !(recorded && isPaid(recorded)) && nowMs - sentAtMs < algorithmOf(policy).lifeMs(policy)
      if (!isOwed) this.uncounted -= units
      return isOwed
    })
    if (left.length === this.#owed.length) return
    this.#owed = left
    this.forget()
  }

  /** Forgets the state. Answers that are awaited will not be learned either. */
  forget(): void {
    this.#last = undefined
    this.#forgotten = this.#questions
  }
}

/** The state of the store, as this process knows it. */
interface StoreState {
  /** Tells whether failure modes decide some requests at least. */
  isAway(): boolean
  /** Tells whether the store counts units by now that were charged while it was away. */
  isPaid(receipt: Receipt): boolean
}

/** Number of keys whose last known state is kept. Keys with uncounted units are kept besides. */
const maxKeys = 10_000

/** Time (ms) for which units are collected, so that one charge of a key carries many of them. */
const collectMs = 5

/**
 * Decides requests by the last known state of their keys, and tells the store afterwards. Of each
 * key at most `maxUncounted` units are admitted that the store has not confirmed.
 */
export class UncountedUnits extends Ledger<KnownKey> {
  readonly #store: StoreState

  constructor(store: StoreState) {
    super(maxKeys, ({ uncounted }) => uncounted > 0, false)
    this.#store = store
  }

  /** Returns the units that the store has not confirmed, and the bound that is in force. */
  reading(instances = 1): Pick<StoreHealth, 'uncountedUnits' | 'uncountedBound'> {
    let uncountedUnits = 0
    let most = 0
    for (const key of this.values()) {
      key.settleDebts(this.#store.isPaid)
      uncountedUnits += key.uncounted
      most = Math.max(most, key.maxUncounted)
    }
    return { uncountedUnits, uncountedBound: most * instances }
  }

  forget(changed: readonly CountedKey[]): void {
    for (const each of changed) {
      // The store alone knows which key a digest is of.
      const keys = each.digest === undefined ? [this.find(each)] : this.values()
      for (const key of keys) {
        if (!key) continue
        this.flush(key)
        key.forget()
      }
    }
  }

  close(): void {
    for (const key of this.values()) this.flush(key)
  }

  /** Decides by the last known states of keys, and learns from the answers of the store. */
  decider(way: StoreWay): Decider {
    return (next) => (op, checks, request) => {
      const outcomes = this.#answer(op, checks, way)
      if (outcomes) return decisionOf(outcomes, checks, 'store')
      const learners = checks.map((check) => this.#learnerOf(check, way))
      return andThen(next(op, checks, request), (decision) => {
        // A denial may be a remembered one, with numbers of an older answer.
        if (decision.source !== 'store' || !decision.allowed) return decision
        for (const [index, outcome] of decision.outcomes.entries()) learners[index]?.(outcome)
        return decision
      })
    }
  }

  /** Decides a request by the last known states, if nothing of it needs the store. */
  #answer(op: DecidingOp, checks: readonly Check[], way: StoreWay): Outcome[] | undefined {
    if (op === 'charge' || this.#store.isAway()) return undefined
    const outcomes: CheckOutcome[] = []
    for (const check of checks) {
      const outcome = hasUncounted(check) ? this.find(check)?.answer(check) : undefined
      if (!outcome) return undefined
      outcomes.push(outcome)
    }
    if (op === 'peek') return outcomes
    for (const [index, outcome] of outcomes.entries()) {
      const check = checks[index]
      if (!check || check.cost === 0) continue
      const key = this.of(check)
      key.way = way
      outcome.remaining = (outcome.remaining ?? 0) - check.cost
      outcome.receipt = new Receipt(check, 0, undefined, key.take(check))
      this.#collect(key)
    }
    return outcomes
  }

  /**
   * Notes that the store is asked about a check, and tells it of all units of the key before.
   * Returns what learns from its answer.
   */
  #learnerOf(check: Check, way: StoreWay): ((answer: Outcome) => void) | undefined {
    if (!hasUncounted(check)) return undefined
    const key = this.of(check)
    key.way = way
    this.flush(key)
    key.settleDebts(this.#store.isPaid)
    key.maxUncounted = check.policy.maxUncounted
    const number = key.nextQuestion()
    return (answer) => key.learn(number, answer)
  }

  /**
   * Tells the store of the units of a key a moment later, or now if they are half of the
   * units that may be uncounted. While one charge is under way, units wait for its answer.
   */
  #collect(key: KnownKey): void {
    if (key.awaited > 0 || key.unsent === 0) return
    if (2 * key.unsent >= key.maxUncounted) this.flush(key)
    else this.flushWithin(collectMs, key)
  }

  protected override open(): KnownKey {
    return new KnownKey()
  }

  protected override send(key: KnownKey): void {
    const batch = key.takeBatch()
    const { way } = key
    if (!batch || !way) return
    const { policy, key: name, limit } = batch.check
    const number = key.nextQuestion()
    const check = { policy, key: name, limit, cost: batch.units }
    // If nobody can count, the memory of this process is full too.
    const charged = promised(() => way.charge(check)).catch(() => undefined)
    void charged.then((decision) => {
      const outcome = decision?.outcomes[0]
      key.answered(batch, number, decision?.source === 'store' ? outcome : undefined)
      batch.settle(outcome?.receipt, way.change)
      this.#collect(key)
    })
  }
}

function hasUncounted({ policy, digest }: Check): boolean {
  return policy.maxUncounted > 0 && digest === undefined
}
