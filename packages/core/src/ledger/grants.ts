import { type Check, type GrantCheck, giveBack, Receipt, type ResetCheck } from '../model/check.ts'
import { type Decide, type Decider, decideOthers } from '../model/decision.ts'
import type { Policy } from '../model/policy.ts'
import type { DecidingOp, Granted, Outcome, Store } from '../model/store.ts'
import type { GrantCounters } from '../model/store-health.ts'
import { promised } from '../runtime/maybe-promise.ts'
import { Alarm, endsWithin, later, type Moment, momentNow, monotonicMs } from '../waiting/timers.ts'
import { type HotKey, HotPolicy, idleMs } from './hot-policy.ts'
import type { StoreWay } from './local-units.ts'

/** Share of a grant's lifetime that is left when it is closed, so that unspent units return. */
const closingShare = 1 / 8

/** Number of keys per round of requests when a limiter closes, and maximum time (ms) for all. */
const closedAtOnce = 100
const closingMs = 2_000

/** Spends grants for the hot keys of a store, and requests more. */
export class Grants {
  readonly counters: GrantCounters = { taken: 0, spent: 0, returned: 0, lapsed: 0 }
  readonly #isAway: () => boolean
  readonly #policies = new Map<Policy, HotPolicy>()
  readonly #alarm = new Alarm(() => this.#sweep())

  /** @param isAway returns whether the store is unavailable: then no grants are requested */
  constructor(isAway: () => boolean) {
    this.#isAway = isAway
  }

  get hotKeys(): number {
    let size = 0
    for (const { keys } of this.#policies.values()) size += keys.size
    return size
  }

  /** Answers checks from grants. If another check of the request denies, the units come back. */
  decider(way: StoreWay): Decider {
    function untake(outcome: Outcome): Outcome {
      const { receipt, remaining = 0, limit } = outcome
      if (!receipt) return outcome
      const isBack = giveBack(receipt, receipt.check.cost, way.change) === true
      const left = isBack ? Math.min(limit, remaining + receipt.check.cost) : remaining
      return { ...outcome, remaining: left, receipt: undefined }
    }
    return (next) => {
      const askAndRefill: Decide = (op, checks, request) => {
        const decision = next(op, checks, request)
        // Requested last: a grant must not hold the units that this request needs.
        for (const { policy, key } of op === 'consume' ? checks : []) {
          const hot = this.#policies.get(policy)?.keys.get(key)
          if (hot) this.#refill(hot, momentNow())
        }
        return decision
      }
      return (op, checks, request) => {
        const here = checks.map((check) => this.#answer(op, check, way))
        return decideOthers(checks, here, (others) => askAndRefill(op, others, request), untake)
      }
    }
  }

  /** Answers a check from a grant. A `consume` spends its units. */
  #answer(op: DecidingOp, check: Check, way: StoreWay): Outcome | undefined {
    const { policy, cost } = check
    if (policy.prefetchMs === 0 || op === 'charge' || check.digest !== undefined) return undefined
    let hotPolicy = this.#policies.get(policy)
    if (!hotPolicy) {
      hotPolicy = new HotPolicy(policy, way, this.counters)
      this.#policies.set(policy, hotPolicy)
      this.#time()
    }
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

  /** Closes the grants of keys to reset, and adds them to the checks. */
  forget(checks: readonly Check[]): readonly ResetCheck[] {
    return checks.map((check) => {
      const closed = [...this.#policies.values()].flatMap(({ policy, keys }) => {
        if (policy.id !== check.policy.id) return []
        if (check.digest === undefined) return keys.get(check.key)?.forget() ?? []
        // Only the store knows the key.
        for (const hot of keys.values()) hot.close(() => true)
        return []
      })
      return closed.length === 0 ? check : { ...check, closed }
    })
  }

  /**
   * Returns all unspent units to a store, a few keys at a time, so that neither this process nor
   * Redis is blocked. Units that are not returned within two seconds lapse.
   */
  async close(store: Store): Promise<void> {
    const closed: HotKey[] = []
    for (const { policy, way, keys } of this.#policies.values()) {
      if (way.limiter.store !== store) continue
      for (const hot of keys.values()) {
        // The requests below report what was spent, since nothing is reset.
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
      // Closing the store waits for the last ones.
      if (closed.length > 0) await endsWithin(Promise.all(answers), untilMs - monotonicMs())
    }
  }

  /** Requests a grant when less than half of one is left. */
  #refill(hot: HotKey, now: Moment): void {
    const nowMs = now.monotonicMs
    // A remainder that is too small for one request would only delay the next grant.
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
    // If the answer grants few units or none, nothing is requested for a while.
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
      // Too small for a request: if this process kept it, the next request would be denied.
      hot.close((each) => each === grant)
      void this.#request(hot, 0, answeredAt)
    }
    const isReturning = sent.some(({ mustBeSent }) => mustBeSent)
    // The key's next request calls the store, and reports why it fails.
    return promised(() => way.grant(check, isReturning)).then(onAnswer, () => hot.fail(id))
  }

  /** Schedules the next sweep early enough for all policies. */
  #time(): void {
    if (this.#policies.size === 0) return
    let delayMs = idleMs
    for (const { policy, keys } of this.#policies.values()) {
      if (keys.size > 0) delayMs = Math.min(delayMs, (policy.prefetchMs * closingShare) / 2)
    }
    this.#alarm.within(Math.max(1, delayMs))
  }

  /** Closes grants that end soon, so that their units return. */
  #sweep(): void {
    const now = momentNow()
    const nowMs = now.monotonicMs
    const isAway = this.#isAway()
    for (const hotPolicy of this.#policies.values()) {
      const soon = later(now, hotPolicy.policy.prefetchMs * closingShare)
      for (const hot of hotPolicy.keys.values()) {
        this.counters.lapsed += hot.dropEnded(now)
        // An unavailable store takes no units back, so they can be spent until the end.
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

/** Returns an id that differs from those of the key's other current grants. */
export function randomId(): number {
  return 1 + Math.floor(Math.random() * (Number.MAX_SAFE_INTEGER - 1))
}
