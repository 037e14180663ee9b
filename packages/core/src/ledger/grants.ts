import { type Check, type GrantCheck, giveBack, Receipt, type ResetCheck } from '../model/check.ts'
import { type Decider, type Decision, decideOthers } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { DecidingOp, Granted, Outcome, Store } from '../model/store.ts'
import type { GrantCounters } from '../model/store-health.ts'
import { type MaybePromise, promised } from '../runtime/maybe-promise.ts'
import { Alarm, endsWithin, later, type Moment, momentNow, monotonicMs } from '../waiting/timers.ts'
import { type HotKey, HotPolicy, idleMs } from './hot-policy.ts'
import type { StoreWay } from './local-units.ts'

/** The part of a grant's life that is left when it is closed, so that unspent units come back. */
const closingShare = 1 / 8

/** Number of keys whose grants are closed together at the end of a limiter. */
const closedAtOnce = 100
/** The longest time (ms) for that. */
const closingMs = 2_000

/** Spends grants for the hot keys of a store, and asks the store for more. */
export class Grants {
  readonly counters: GrantCounters = { taken: 0, spent: 0, returned: 0, lapsed: 0 }
  readonly #isAway: () => boolean
  readonly #policies = new Map<Policy, HotPolicy>()
  readonly #alarm = new Alarm(() => this.#sweep())

  /** @param isAway tells whether the store is away: then it is asked for no grants */
  constructor(isAway: () => boolean) {
    this.#isAway = isAway
  }

  get hotKeys(): number {
    let size = 0
    for (const { keys } of this.#policies.values()) size += keys.size
    return size
  }

  /**
   * Answers checks by grants, and asks about the others alone. If one of the others denies, the
   * units come back to their grants.
   */
  decider(way: StoreWay): Decider {
    /** A denied request takes nothing. */
    function notTaken(outcome: Outcome): Outcome {
      const { receipt, remaining = 0, limit } = outcome
      if (!receipt) return outcome
      const isBack = giveBack(receipt, receipt.check.cost, way.change) === true
      const left = isBack ? Math.min(limit, remaining + receipt.check.cost) : remaining
      return { ...outcome, remaining: left, receipt: undefined }
    }
    return (next) => (op, checks, request) => {
      const here = checks.map((check) => this.#answer(op, check, way))
      const askAndRefill = (others: readonly Check[]): MaybePromise<Decision> => {
        const decision = next(op, others, request)
        // Last: the process must not hold units that its own request needs.
        for (const { policy, key } of op === 'consume' ? others : []) {
          const hot = this.#policies.get(policy)?.keys.get(key)
          if (hot) this.#refill(hot, momentNow())
        }
        return decision
      }
      return decideOthers(checks, here, askAndRefill, notTaken)
    }
  }

  /** Answers a check by a grant, and spends the units of a `consume`. */
  #answer(op: DecidingOp, check: Check, way: StoreWay): Outcome | undefined {
    const { policy, cost } = check
    if (policy.prefetchMs === 0 || op === 'charge' || check.digest !== undefined) return undefined
    const hotPolicy = this.#policies.get(policy) ?? this.#add(policy, way)
    const now = momentNow()
    const known = hotPolicy.keys.get(check.key)
    if (op === 'peek') {
      const isEnough = known?.limit === check.limit && known.find(cost, now)
      return isEnough ? known.outcomeOf(check, undefined) : undefined
    }
    const hot = known ?? hotPolicy.see(check, now.monotonicMs)
    if (!hot) return undefined
    hot.count(cost, now.monotonicMs)
    if (hot.limit !== check.limit) hot.changeLimit(check.limit, now.monotonicMs)
    const grant = hot.spend(cost, now)
    if (!grant) return undefined
    this.counters.spent += cost
    hot.spentAtMs = now.monotonicMs
    this.#refill(hot, now)
    return hot.outcomeOf(check, new Receipt(check, 0, undefined, grant))
  }

  /**
   * Closes the grants of keys that are reset. Returns the checks with the grants that the store
   * needs.
   */
  forget(checks: readonly Check[]): readonly ResetCheck[] {
    return checks.map((check) => {
      const closed = [...this.#policies.values()].flatMap(({ policy, keys }) => {
        if (policy.id !== check.policy.id) return []
        if (check.digest === undefined) return keys.get(check.key)?.forget() ?? []
        // The store alone knows which key it is.
        for (const hot of keys.values()) hot.close(() => true)
        return []
      })
      return closed.length === 0 ? check : { ...check, closed }
    })
  }

  /**
   * Returns all units of a store that are not spent: of some keys at a time, so that neither this
   * process nor Redis stands still. Units that are not returned within two seconds lapse.
   */
  async close(store: Store): Promise<void> {
    const closed: HotKey[] = []
    for (const { policy, way, keys } of this.#policies.values()) {
      if (way.store !== store) continue
      for (const hot of keys.values()) {
        // With their true units: nothing is reset.
        hot.forget()
        if (hot.closed.length > 0) closed.push(hot)
      }
      this.#policies.delete(policy)
    }
    const untilMs = monotonicMs() + closingMs
    while (closed.length > 0 && monotonicMs() < untilMs) {
      const some = closed.splice(0, closedAtOnce)
      const now = momentNow()
      const answers = some.map((hot) => this.#request(hot, 0, now))
      // The store itself settles the last ones.
      if (closed.length > 0) await endsWithin(Promise.all(answers), untilMs - monotonicMs())
    }
  }

  #add(policy: Policy, way: StoreWay): HotPolicy {
    const added = new HotPolicy(policy, way, this.counters)
    this.#policies.set(policy, added)
    this.#time()
    return added
  }

  /** Asks for a grant when less than half of one is left. */
  #refill(hot: HotKey, now: Moment): void {
    const nowMs = now.monotonicMs
    // A rest that is too small for one request would only delay the next grant.
    if (hot.left > 0 && hot.left < hot.meanCost(nowMs)) hot.close(() => true)
    if (hot.pending ? nowMs < hot.pending.endsAt.monotonicMs : nowMs < hot.askAfterMs) return
    const { left } = hot
    const units = hot.unitsOfGrant(nowMs)
    if (left >= units / 2) return
    this.counters.lapsed += hot.dropEnded(now)
    if (hot.limit / hot.divisor < hot.meanCost(nowMs)) return
    void this.#request(hot, Math.max(0, units - hot.left), now)
  }

  /** Returns a promise that resolves after the answer; never rejects. */
  async #request(hot: HotKey, units: number, now: Moment): Promise<void> {
    if (this.#isAway()) return
    const { key, limit, divisor } = hot
    const { policy, way } = hot.of
    hot.close(({ left }) => left === 0)
    const id = randomId()
    const lifeMs = policy.prefetchMs
    const sent = [...hot.closed]
    const { soleSpent } = hot
    const { closed } = hot.request(id, lifeMs, now)
    const terms = { id, lifeMs, divisor, closed }
    const check: GrantCheck = { policy, key, cost: units, limit, terms }
    // After an answer with few units, or none, the key is left alone for a while.
    if (units > 0) hot.askAfterMs = now.monotonicMs + lifeMs / 2
    this.#time()

    const onAnswer = ([answer]: readonly Granted[]): void => {
      const granted = answer?.units ?? 0
      for (const grant of sent) {
        if (!grant.isOver) this.counters.returned += grant.left
        grant.isOver = true
      }
      soleSpent?.settle(answer?.settled, way.change)
      if (hot.pending?.id !== id) return
      this.counters.taken += granted
      const grant = hot.answer(id, granted, momentNow())
      if (!grant) this.counters.lapsed += granted
      if (hot.limit !== limit) {
        hot.close(() => true)
        return
      }
      hot.lastAnswer = answer
      if (units > 0 && 2 * granted >= units) hot.askAfterMs = 0
      const answeredAt = momentNow()
      if (!grant || granted >= hot.meanCost(answeredAt.monotonicMs)) return
      // If it stayed held, the next request would be denied for it.
      hot.close((each) => each === grant)
      void this.#request(hot, 0, answeredAt)
    }
    const isReturning = sent.some(({ mustBeSent }) => mustBeSent)
    // The next request of the key asks the store, and finds out why it failed.
    return promised(() => way.grant(check, isReturning)).then(onAnswer, () => hot.fail(id))
  }

  /** Sees to it that the next sweep is early enough for all policies. */
  #time(): void {
    if (this.#policies.size === 0) return
    let delayMs = idleMs
    for (const { policy, keys } of this.#policies.values()) {
      if (keys.size > 0) delayMs = Math.min(delayMs, (policy.prefetchMs * closingShare) / 2)
    }
    this.#alarm.within(Math.max(1, delayMs))
  }

  /** Closes grants that end soon, so that their units come back. */
  #sweep(): void {
    const now = momentNow()
    const nowMs = now.monotonicMs
    const isAway = this.#isAway()
    for (const hotPolicy of this.#policies.values()) {
      const soon = later(now, hotPolicy.policy.prefetchMs * closingShare)
      for (const hot of hotPolicy.keys.values()) {
        this.counters.lapsed += hot.dropEnded(now)
        // Nobody takes units back from a store that is away: they can be spent until the end.
        if (!isAway) hot.close((grant) => grant.hasEnded(soon))
        if (!hot.pending && hot.closed.some(({ mustBeSent }) => mustBeSent)) {
          const isDue = nowMs >= hot.askAfterMs && hot.isSpent(nowMs)
          const wanted = isDue ? hot.unitsOfGrant(nowMs) : 0
          void this.#request(hot, Math.max(0, wanted - hot.left), now)
        }
        hot.cool(nowMs)
      }
      if (hotPolicy.isIdle(nowMs)) this.#policies.delete(hotPolicy.policy)
    }
    this.#time()
  }
}

/** Ids have to differ among the grants of one key that are alive at one time. */
export function randomId(): number {
  return 1 + Math.floor(Math.random() * (Number.MAX_SAFE_INTEGER - 1))
}
