import { type ChangeAtStore, type Check, giveBack, keyId, Receipt } from '../model/check.ts'
import type { Decision } from '../model/decision.ts'
import type { DecidingOp, Outcome } from '../model/store.ts'
import type { StoreHealth } from '../model/store-health.ts'
import { andThen, isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { startTimer } from '../waiting/timers.ts'
import { KnownKey } from './known-key.ts'

/** The way of one limiter to the store. */
export interface StoreWay {
  /** Takes units without asking; in this process while the store is away. */
  charge(check: Check): MaybePromise<Decision>
  readonly change: ChangeAtStore
}

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
  /** Keys that were used of late. */
  #young = new Map<string, KnownKey>()
  #old = new Map<string, KnownKey>()
  #room = maxKeys
  /** Keys with units that the store is told of when the timer ends. */
  readonly #collecting = new Map<KnownKey, StoreWay>()

  constructor(store: StoreState) {
    this.#store = store
  }

  /** Returns the units that the store has not confirmed, and the bound that is in force. */
  reading(instances = 1): Pick<StoreHealth, 'uncountedUnits' | 'uncountedBound'> {
    let uncountedUnits = 0
    let most = 0
    for (const key of this.#keys()) {
      key.settleDebts(this.#store.isPaid)
      uncountedUnits += key.uncounted
      most = Math.max(most, key.maxUncounted)
    }
    return { uncountedUnits, uncountedBound: most * instances }
  }

  /** Tells the store of all units of keys that are to be changed, and forgets their states. */
  forget(checks: readonly Check[], way: StoreWay): void {
    for (const { policy, key, digest } of checks) {
      if (policy.maxUncounted === 0) continue
      // The store alone knows which key a digest is of.
      const keys = digest === undefined ? [this.#find(keyId({ policy, key }))] : this.#keys()
      for (const each of keys) {
        if (!each) continue
        this.#tell(each, way)
        each.forget()
      }
    }
  }

  /** Tells the store of all units. */
  close(way: StoreWay): void {
    for (const key of this.#keys()) this.#tell(key, way)
  }

  /** Decides a request by the last known states, if nothing of it needs the store. */
  answer(op: DecidingOp, checks: readonly Check[], way: StoreWay): Outcome[] | undefined {
    if (op === 'charge' || this.#store.isAway()) return undefined
    const outcomes: Outcome[] = []
    for (const check of checks) {
      if (check.policy.maxUncounted === 0 || check.digest !== undefined) return undefined
      const outcome = this.#find(keyId(check))?.answer(check)
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
    const key = this.#keyOf(check)
    const receipt = new Receipt(check, 0, undefined, key.take(check))
    this.#collect(key, way)
    return { ...outcome, remaining: remaining - check.cost, receipt }
  }

  /** Notes that the store is asked about a check. It is told of all units of the key before. */
  begin(check: Check, way: StoreWay): Question | undefined {
    if (check.policy.maxUncounted === 0 || check.digest !== undefined) return undefined
    const key = this.#keyOf(check)
    this.#tell(key, way)
    key.settleDebts(this.#store.isPaid)
    key.maxUncounted = check.policy.maxUncounted
    return { key, number: key.ask() }
  }

  /**
   * Tells the store of the units of a key a moment later, or now if they are half of what may be
   * uncounted. While one charge is under way, units wait for its answer.
   */
  #collect(key: KnownKey, way: StoreWay): void {
    if (key.awaited > 0 || !key.hasUntold) return
    if (key.isHalfFull) {
      this.#tell(key, way)
      return
    }
    if (this.#collecting.size === 0) startTimer(() => this.#tellCollected(), collectMs)
    this.#collecting.set(key, way)
  }

  #tellCollected(): void {
    const collected = [...this.#collecting]
    this.#collecting.clear()
    for (const [key, way] of collected) if (key.awaited === 0) this.#tell(key, way)
  }

  /** Has the store count the units of a key that it was not told of. */
  #tell(key: KnownKey, way: StoreWay): void {
    const batch = key.tell()
    if (!batch) return
    const { policy, key: name, limit } = batch.check
    const check = { policy, key: name, limit, cost: batch.units }
    const number = key.ask()
    void andThen(this.#charge(check, way), (decision) => {
      const outcome = decision?.outcomes[0]
      const { receipt } = outcome ?? {}
      batch.charge = receipt
      if (decision?.source === 'store' && outcome) key.confirm(batch, number, outcome)
      else key.owe(batch)
      if (receipt && batch.lateUnits > 0) {
        const late = { ...check, cost: batch.lateUnits, receipt }
        void giveBack(late, way.change)
      }
      this.#collect(key, way)
    })
  }

  /** Answers `undefined` if nobody could count: the memory of this process is full, too. */
  #charge(check: Check, way: StoreWay): MaybePromise<Decision | undefined> {
    try {
      const decision = way.charge(check)
      return isPromise(decision) ? decision.catch(() => undefined) : decision
    } catch {
      return undefined
    }
  }

  *#keys(): Iterable<KnownKey> {
    yield* this.#young.values()
    for (const [id, key] of this.#old) if (!this.#young.has(id)) yield key
  }

  #find(id: string): KnownKey | undefined {
    const young = this.#young.get(id)
    if (young) return young
    const old = this.#old.get(id)
    if (old) this.#put(id, old)
    return old
  }

  #keyOf(check: Check): KnownKey {
    const id = keyId(check)
    const known = this.#find(id) ?? new KnownKey()
    if (!this.#young.has(id)) this.#put(id, known)
    return known
  }

  #put(id: string, key: KnownKey): void {
    if (this.#young.size >= this.#room) {
      const busy = [...this.#old].filter(([, { uncounted }]) => uncounted > 0)
      this.#old = new Map([...busy, ...this.#young])
      this.#young = new Map()
      this.#room = maxKeys
    }
    this.#young.set(id, key)
  }
}
