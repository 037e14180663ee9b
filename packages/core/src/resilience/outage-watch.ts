import { algorithmOf } from '../algorithms/table.ts'
import { type Fallback, unavailableRetryMs } from '../ledger/fallback.ts'
import type { Check } from '../model/check.ts'
import { type Decision, decisionOf } from '../model/decision.ts'
import type { FailureMode } from '../model/policy.ts'
import type { BreakerState } from '../model/resilience-event.ts'
import type { Store } from '../model/store.ts'
import { isSluiceError } from '../options/errors.ts'
import { fractionOf } from '../runtime/hash.ts'
import { monotonicMs } from '../waiting/timers.ts'
import type { CallingLimiter, PendingAsk } from './pending-ask.ts'
import type { StoreMonitor } from './store-monitor.ts'

/** Maximum time (ms) for the return of traffic, and its jitter: a fleet must not return at once. */
const maxRampMs = 2_000
const rampJitter = 0.25

/** The failure modes, the strictest last. */
const byStrictness: readonly FailureMode[] = ['open', 'fallback', 'closed']

/** Incidents that open the breaker: failed batches, or moments at which deadlines passed. */
const minIncidents = 3
/** They must be consecutive, or this share of the last checks, if there were enough checks. */
const failureRate = 0.5
const minChecks = 20
const rateWindowMs = 10_000
/** First and maximum wait before a probe: each probe that fails doubles it. */
const firstRetryMs = 500
const maxRetryMs = 2_000
/** Waits are shorter by up to this share, so that the processes of a fleet do not probe at once. */
const probeJitter = 0.5

const passAll = decisionOf([], [], 'open')

const refuseAll: Decision = {
  ...decisionOf([], [], 'closed'),
  allowed: false,
  retryAfterMs: unavailableRetryMs,
}

/** The parts of a store that an outage affects. */
export interface StoreParts {
  readonly monitor: StoreMonitor
  readonly fallback: Fallback
  /** The store is unavailable: nobody waits for it any longer. */
  onAway(error: unknown): void
  /** The store answers again, or all traffic is back: it can count what it missed. */
  onBack(store: Store): void
}

/**
 * Lets failure modes decide from the failure of a store until all traffic is back. Its circuit
 * breaker keeps requests from waiting for a store that does not answer.
 */
export class OutageWatch {
  /** The state of the breaker. */
  state: BreakerState = 'closed'
  /** While the breaker is open, a request after this monotonic time (ms) is a probe. */
  retryAt = 0
  readonly #shared: StoreParts
  #since: number | undefined
  /** The gradual return of traffic: a growing share of the keys. Each key returns once. */
  #ramp: { readonly startMs: number; readonly endMs: number } | undefined
  /** Number of decisions without the store before the outage. */
  #decisionsBefore = 0
  #inRow = 0
  #lastIncident: unknown
  #reopenings = 0
  #windowStartMs = Number.NEGATIVE_INFINITY
  #counts = new Counts()
  #countsBefore = new Counts()

  constructor(shared: StoreParts) {
    this.#shared = shared
  }

  /** False once all keys have returned, even if no request has noticed. */
  get isUnderWay(): boolean {
    return this.#since !== undefined && !(this.#ramp && monotonicMs() >= this.#ramp.endMs)
  }

  /** True if the store may be called, and may count what it missed. */
  get isClosed(): boolean {
    return this.state === 'closed'
  }

  /** True if the store has answered last, or traffic is returning to it. */
  get isSound(): boolean {
    return this.isClosed && (this.#inRow === 0 || this.isUnderWay)
  }

  /**
   * Returns whether the store may be called. If that is a probe, its end has to be reported with
   * `succeed`, `fail` or `withdraw`.
   */
  mayAsk({ checks, caller }: Pick<PendingAsk, 'checks' | 'caller'>): boolean {
    if (this.#since === undefined) return true
    const nowMs = monotonicMs()
    if (!this.#ramp) {
      if (this.state !== 'open' || nowMs < this.retryAt) return false
      this.state = 'half-open'
      return true
    }
    const { startMs, endMs } = this.#ramp
    if (nowMs < endMs) {
      return fractionOf(checks[0]?.key ?? '') < (nowMs - startMs) / (endMs - startMs)
    }
    this.#end(caller.limiter, endMs)
    return true
  }

  /** A probe did not reach the store after all: the next request tries again. */
  withdraw(): void {
    if (this.state === 'half-open') this.state = 'open'
  }

  /** Calls the store, and records whether it answered. Rejects if the store failed. */
  async attempt<T>(ask: () => Promise<T>, caller: CallingLimiter): Promise<T> {
    const askedAt = monotonicMs()
    try {
      const asking = ask()
      this.noteWait()
      const answer = await asking
      this.succeed(caller, askedAt)
      return answer
    } catch (error) {
      this.fail(caller, error)
      throw error
    }
  }

  noteWait(): void {
    if (this.state !== 'half-open') return
    this.#shared.monitor.tell({ type: 'breaker', state: 'half-open', retryInMs: 0 })
  }

  /** @param isDoubtful whether the store may still count the units */
  decideWithout(ask: PendingAsk, isDoubtful = false): Decision {
    this.#shared.monitor.counters.decisionsWithout += 1
    const { op, checks } = ask
    const { failureMode, store, instances = store.fleet?.instances ?? 1 } = ask.caller.limiter
    const mode = strictest(checks, failureMode)
    // The units of `async` policies are bounded in every mode.
    const isUncounted = op === 'charge' && checks.every(({ policy }) => policy.maxUncounted > 0)
    if (mode === 'open' && !isUncounted) return passAll
    // A charge is counted in the mode 'closed' too: its units are already used.
    if (mode === 'closed' && op !== 'charge') return refuseAll
    return this.#shared.fallback.decide(ask, instances, isDoubtful)
  }

  /**
   * The store answered. An open breaker ignores late answers.
   * @param askedAt monotonic time (ms) of the call
   */
  succeed(caller: CallingLimiter, askedAt: number = monotonicMs()): void {
    const { state } = this
    if (state === 'open') return
    this.state = 'closed'
    this.#inRow = 0
    if (state === 'closed') {
      this.#countsAt(askedAt).checks += 1
      return
    }
    const startMs = monotonicMs()
    // After a short outage, the return takes no longer than the outage.
    const outageMs = startMs - (this.#since ?? startMs)
    const jittered = 1 + rampJitter * (2 * Math.random() - 1)
    this.#ramp = { startMs, endMs: startMs + Math.min(maxRampMs, outageMs) * jittered }
    this.#shared.monitor.tell({ type: 'breaker', state: 'closed', retryInMs: 0 })
    this.#shared.onBack(caller.store)
  }

  /**
   * The store failed a check.
   * @param error failures with the same object, such as those of a batch, are one incident
   */
  fail(caller: CallingLimiter, error: unknown): void {
    // A store that cannot decide one check is available, and decides others.
    if (isSluiceError(error, 'SLUICE_STORE_CHECK')) this.succeed(caller)
    else if (this.state === 'half-open') this.#open(error, this.#reopenings + 1)
    else if (this.isClosed && this.#isOneTooMany(error)) this.#open(error, this.#reopenings)
  }

  #open(error: unknown, reopenings: number): void {
    const nowMs = monotonicMs()
    const waitMs = Math.min(maxRetryMs, firstRetryMs * 2 ** reopenings)
    this.state = 'open'
    this.retryAt = nowMs + waitMs * (1 - probeJitter * Math.random())
    this.#reopenings = reopenings
    this.#inRow = 0
    this.#counts = new Counts()
    this.#countsBefore = new Counts()
    this.#ramp = undefined
    const { monitor } = this.#shared
    // Otherwise the store has failed again while traffic returned.
    if (this.#since === undefined) {
      this.#since = nowMs
      this.#decisionsBefore = monitor.counters.decisionsWithout
      monitor.tell({ type: 'fallback-entered' })
    }
    monitor.tell({ type: 'breaker', state: 'open', retryInMs: Math.ceil(this.retryAt - nowMs) })
    this.#shared.onAway(error)
  }

  #end(caller: CallingLimiter, endMs: number): void {
    const { monitor } = this.#shared
    const durationMs = Math.round(endMs - (this.#since ?? endMs))
    const decisions = monitor.counters.decisionsWithout - this.#decisionsBefore
    this.#since = undefined
    this.#ramp = undefined
    // The store is stable again: the next outage begins with short waits.
    this.#reopenings = 0
    monitor.tell({ type: 'fallback-left', durationMs, decisions })
    this.#shared.onBack(caller.store)
  }

  /** Judges the consecutive incidents, and the last one to two windows. */
  #isOneTooMany(incident: unknown): boolean {
    const isNew = typeof incident !== 'object' || incident !== this.#lastIncident
    this.#lastIncident = incident
    const now = this.#countsAt(monotonicMs())
    now.checks += 1
    now.failed += 1
    if (isNew) {
      now.incidents += 1
      this.#inRow += 1
    }
    if (this.#inRow >= minIncidents) return true
    const before = this.#countsBefore
    const checks = now.checks + before.checks
    const isMost = now.failed + before.failed >= failureRate * checks
    return isMost && checks >= minChecks && now.incidents + before.incidents >= minIncidents
  }

  #countsAt(nowMs: number): Counts {
    const elapsedMs = nowMs - this.#windowStartMs
    if (elapsedMs >= rateWindowMs) {
      this.#countsBefore = elapsedMs < 2 * rateWindowMs ? this.#counts : new Counts()
      this.#counts = new Counts()
      this.#windowStartMs = nowMs
    }
    return this.#counts
  }
}

/** The checks of one window. */
class Counts {
  checks = 0
  failed = 0
  incidents = 0
}

/** Returns the strictest failure mode of a request's policies, except its penalty. */
function strictest(checks: readonly Check[], ofLimiter: FailureMode): FailureMode {
  let found = -1
  for (const { policy } of checks) {
    if (algorithmOf(policy).counts === 'strikes') continue
    found = Math.max(found, byStrictness.indexOf(policy.failureMode ?? ofLimiter))
  }
  return byStrictness[found] ?? ofLimiter
}
