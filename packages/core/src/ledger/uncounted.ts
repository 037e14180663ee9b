import { type Check, Receipt } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { DecidingOp, Outcome } from '../model/store.ts'
import type { StoreHealth } from '../model/store-health.ts'
import { andThen, isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { KnownKey } from './known-key.ts'
import { Ledger } from './ledger.ts'
import type { StoreWay } from './local-units.ts'

/** The state of the store, as this process knows it. */
interface StoreState {
  /** Tells whether failure modes decide some requests at least. */
  isAway(): boolean
  /** Tells whether the store counts units by now that were charged while it was away. */
  isPaid(receipt: Receipt): boolean
}

/** A check that the store is asked about. */
interface Question {
  readonly key: KnownKey
  readonly number: number
}

/** Number of keys whose last known state is kept. Keys with uncounted units are kept besides. */
const maxKeys = 10_000

/** Time (ms) for which units are collected, so that one charge of a key carries many of them. */
const collectMs = 5

/**
 * Decides requests by the last known state of their keys, and tells the store afterwards. Of each
 * key at most `maxUncounted` units are admitted that the store has not confirmed.
 */
export class Uncounted {
  readonly #store: StoreState
  readonly #keys: Ledger<KnownKey>

  constructor(store: StoreState) {
    this.#store = store
    this.#keys = new Ledger<KnownKey>({
      bound: maxKeys,
      mayLose: false,
      open: () => new KnownKey(),
      mustStay: ({ uncounted }) => uncounted > 0,
      tell: (key) => this.#tell(key),
    })
  }

  /** Returns the units that the store has not confirmed, and the bound that is in force. */
  reading(instances = 1): Pick<StoreHealth, 'uncountedUnits' | 'uncountedBound'> {
    let uncountedUnits = 0
    let most = 0
    for (const key of this.#keys.values()) {
      key.settleDebts(this.#store.isPaid)
      uncountedUnits += key.uncounted
      most = Math.max(most, key.maxUncounted)
    }
    return { uncountedUnits, uncountedBound: most * instances }
  }

  forget(checks: readonly Check[]): void {
    for (const check of checks) {
      if (check.policy.maxUncounted === 0) continue
      // The store alone knows which key a digest is of.
      const keys = check.digest === undefined ? [this.#keys.find(check)] : this.#keys.values()
      for (const key of keys) {
        if (!key) continue
        this.#keys.tell(key)
        key.forget()
      }
    }
  }

  close(): void {
    for (const key of this.#keys.values()) this.#keys.tell(key)
  }

  /** Decides a request by the last known states, if nothing of it needs the store. */
  answer(op: DecidingOp, checks: readonly Check[], way: StoreWay): Outcome[] | undefined {
    if (op === 'charge' || this.#store.isAway()) return undefined
    const outcomes: Outcome[] = []
    for (const check of checks) {
      const outcome = isAhead(check) ? this.#keys.find(check)?.answer(check) : undefined
      if (!outcome) return undefined
      outcomes.push(outcome)
    }
    if (op === 'peek') return outcomes
    return outcomes.map((outcome, index) => {
      const check = checks[index]
      return check && check.cost > 0 ? this.#take(check, outcome, way) : outcome
    })
  }

  #take(check: Check, { remaining = 0, ...outcome }: Outcome, way: StoreWay): Outcome {
    const key = this.#keys.of(check)
    key.way = way
    const receipt = new Receipt(check, 0, undefined, key.take(check))
    this.#collect(key)
    return { ...outcome, remaining: remaining - check.cost, receipt }
  }

  /** Notes that the store is asked about a check. It is told of all units of the key before. */
  begin(check: Check, way: StoreWay): Question | undefined {
    if (!isAhead(check)) return undefined
    const key = this.#keys.of(check)
    key.way = way
    this.#keys.tell(key)
    key.settleDebts(this.#store.isPaid)
    key.maxUncounted = check.policy.maxUncounted
    return { key, number: key.ask() }
  }

  /**
   * Tells the store of the units of a key a moment later, or now if they are half of what may be
   * uncounted. While one charge is under way, units wait for its answer.
   */
  #collect(key: KnownKey): void {
    if (key.awaited > 0 || key.untold === 0) return
    if (2 * key.untold >= key.maxUncounted) this.#keys.tell(key)
    else this.#keys.tellWithin(collectMs, key)
  }

  /** Has the store count the units of a key that it was not told of. */
  #tell(key: KnownKey): void {
    const batch = key.tell()
    const { way } = key
    if (!batch || !way) return
    const { policy, key: name, limit } = batch.check
    const number = key.ask()
    const check = { policy, key: name, limit, cost: batch.units }
    void andThen(charge(check, way), (decision) => {
      const outcome = decision?.outcomes[0]
      key.answered(batch, number, decision?.source === 'store' ? outcome : undefined)
      batch.settle(outcome?.receipt, way.change)
      this.#collect(key)
    })
  }
}

function isAhead({ policy, digest }: Check): boolean {
  return policy.maxUncounted > 0 && digest === undefined
}

/** Answers `undefined` if nobody could count: the memory of this process is full, too. */
function charge(check: Check, way: StoreWay): MaybePromise<Decision | undefined> {
  try {
    const decision = way.charge(check)
    return isPromise(decision) ? decision.catch(() => undefined) : decision
  } catch {
    return undefined
  }
}
