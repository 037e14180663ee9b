import { admittedOutcome, type CheckOutcome } from '../engine/outcome.ts'
import { type Check, type CountedKey, Receipt } from '../model/check.ts'
import { type Decider, decisionOf } from '../model/decision.ts'
import type { DecidingOp, Outcome } from '../model/store.ts'
import type { StoreHealth } from '../model/store-health.ts'
import { andThen, promised } from '../runtime/maybe-promise.ts'
import { monotonicMs } from '../waiting/timers.ts'
import type { Debts } from './debts.ts'
import { Ledger } from './ledger.ts'
import { LocalUnits, type StoreWay } from './local-units.ts'

/** Units of a key that one charge reports to the store. */
class Batch extends LocalUnits {
  /** The check with the largest limit of the requests. */
  check: Check
  units = 0

  constructor(key: KnownKey, check: Check) {
    super(key)
    this.check = check
  }
}

/** The last known state of a key, and the units that this process has taken since. */
class KnownKey {
  /** The last limiter that used the key. */
  way: StoreWay | undefined = undefined
  /** Units admitted here that the store has not confirmed, except for debts. */
  uncounted = 0
  /** Their maximum, from the last check that the store decided. */
  maxUncounted = 0
  /** Number of unanswered charges. */
  awaited = 0
  #open: Batch | undefined
  #last: Outcome | undefined
  /** Monotonic time (ms) of this answer. */
  #lastAtMs = 0
  #calls = 0
  /** Answers to calls up to this number are too old to be learned. */
  #learned = 0

  get unsent(): number {
    return this.#open?.units ?? 0
  }

  /** Answers a check from the last known state, and takes nothing. `undefined`: ask the store. */
  answer(check: Check): CheckOutcome | undefined {
    const last = this.#last
    const { cost, limit, policy } = check
    if (!last || last.limit !== limit || limit === 0) return undefined
    const elapsedMs = monotonicMs() - this.#lastAtMs
    // Nothing that was known a window ago still counts.
    if (elapsedMs >= policy.windowMs) return undefined
    if (this.uncounted + cost > policy.maxUncounted) return undefined
    const { remaining = 0, resetMs = 0 } = last
    const left = remaining - this.uncounted
    if (left < cost) return undefined
    return admittedOutcome(check, { remaining: left, resetMs: resetMs - elapsedMs })
  }

  take(check: Check): Batch {
    this.#open ??= new Batch(this, check)
    // Under a smaller limit, the store would keep less than was admitted.
    if (check.limit > this.#open.check.limit) this.#open.check = check
    this.#open.units += check.cost
    this.uncounted += check.cost
    return this.#open
  }

  /** Removes units that came back before they were sent: those of the open batch. */
  remove(units: number): void {
    this.uncounted -= units
    if (this.#open) this.#open.units -= units
  }

  /** Returns the number of a call to the store that starts now. */
  nextCall(): number {
    this.#calls += 1
    return this.#calls
  }

  /** Takes out the open batch, to be sent to the store. */
  takeBatch(): Batch | undefined {
    const batch = this.#open
    this.#open = undefined
    if (!batch || batch.units === 0) return undefined
    batch.isSent = true
    this.awaited += 1
    return batch
  }

  /** Learns the key's state from an answer, unless a later one is known. */
  learn(number: number, answer: Outcome): void {
    if (answer.remaining === undefined || number <= this.#learned) return
    this.#learned = number
    this.#last = answer
    this.#lastAtMs = monotonicMs()
  }

  /** Records the answer to a batch. Without one, its units are a debt, unless memory is full. */
  answered(batch: Batch, number: number, outcome: Outcome | undefined): void {
    this.awaited -= 1
    this.uncounted -= batch.units
    // An answer that came earlier may have been given before or after this charge.
    if (!outcome || (this.#last && number < this.#learned)) this.forget()
    else this.learn(number, outcome)
  }

  /** Forgets the state, and ignores the answers of current calls. */
  forget(): void {
    this.#last = undefined
    this.#learned = this.#calls
  }
}

/** Number of keys whose state is kept. Keys with uncounted units are kept in addition. */
const maxKeys = 10_000

/** Time (ms) for which a key's units are collected for one charge. */
const collectMs = 5

/**
 * Decides requests from the last known state of their keys, and updates the store afterwards. It
 * admits at most `maxUncounted` units of a key that the store has not confirmed.
 */
export class UncountedUnits extends Ledger<KnownKey> {
  readonly #isAway: () => boolean
  readonly #debts: Debts

  /** @param isAway returns whether failure modes decide at least some requests */
  constructor(isAway: () => boolean, debts: Debts) {
    super(maxKeys, ({ uncounted }) => uncounted > 0, false)
    this.#isAway = isAway
    this.#debts = debts
  }

  /** Returns the units that the store has not confirmed, and their current bound. */
  reading(instances = 1): Pick<StoreHealth, 'uncountedUnits' | 'uncountedBound'> {
    let uncountedUnits = 0
    let most = 0
    for (const key of this.values()) {
      uncountedUnits += key.uncounted
      most = Math.max(most, key.maxUncounted)
    }
    for (const { check, units } of this.#debts.values()) {
      if (hasUncounted(check)) uncountedUnits += units
    }
    return { uncountedUnits, uncountedBound: most * instances }
  }

  forget(changed: readonly CountedKey[]): void {
    for (const each of changed) {
      // Only the store knows the key of a digest.
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

  /** Decides from the last known states of keys, and learns from the store's answers. */
  decider(way: StoreWay): Decider {
    return (next) => (op, checks, request) => {
      const outcomes = this.#answer(op, checks, way)
      if (outcomes) return decisionOf(outcomes, checks, 'store')
      const learners = checks.map((check) => this.#learnerOf(check, way))
      return andThen(next(op, checks, request), (decision) => {
        // A denial may be a cached one, with the numbers of an older answer.
        if (decision.source !== 'store' || !decision.allowed) return decision
        for (const [index, outcome] of decision.outcomes.entries()) learners[index]?.(outcome)
        return decision
      })
    }
  }

  /** Decides a request from the last known states, if none of its checks needs the store. */
  #answer(op: DecidingOp, checks: readonly Check[], way: StoreWay): Outcome[] | undefined {
    if (op === 'charge' || this.#isAway()) return undefined
    const outcomes: CheckOutcome[] = []
    for (const check of checks) {
      // The known state lacks the units of a debt.
      const isKnown = hasUncounted(check) && !this.#debts.find(check)
      const outcome = isKnown ? this.find(check)?.answer(check) : undefined
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

  /** Sends the key's units before the store decides a check. Returns what learns the answer. */
  #learnerOf(check: Check, way: StoreWay): ((answer: Outcome) => void) | undefined {
    if (!hasUncounted(check)) return undefined
    const key = this.of(check)
    key.way = way
    this.flush(key)
    key.maxUncounted = check.policy.maxUncounted
    const number = key.nextCall()
    return (answer) => key.learn(number, answer)
  }

  /** Sends the key's units soon, or now if they are half of the maximum; one charge at a time. */
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
    const number = key.nextCall()
    const check = { policy, key: name, limit, cost: batch.units }
    // It fails only if the memory of this process is full too.
    const charged = promised(() => way.decide('charge', [check])).catch(() => undefined)
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
