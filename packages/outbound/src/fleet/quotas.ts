import {
  type Check,
  type CheckLimiter,
  type Decision,
  endsWithin,
  isMemoryStore,
  type Store,
} from '@sluice/core'
import { background, backgroundSleep } from './background.ts'
import { DataLossWatch } from './data-loss.ts'
import { fleetLimiter } from './flag.ts'
import type { Pause } from './pause.ts'
import { graceMs, type Quota, QuotaUnits, quotaPolicies } from './quota-units.ts'
import { RecentCalls } from './recent-calls.ts'
import { RecoveryWait } from './recovery-wait.ts'

/** The options of an outbound that its whole fleet shares. */
export interface FleetSetup {
  readonly name: string
  readonly limits: readonly Quota[]
  readonly store: Store
  /** In ms. */
  readonly recovery: number
}

/** The units of one call. */
export interface CallLease {
  readonly cost: number
  /** Decision whose leases the call holds. */
  decision: Decision
  /** True while the leases are being renewed. */
  isRenewing: boolean
}

/** No units now. */
export interface NoLease {
  /** Time (ms) before it makes sense to ask again. */
  readonly retryMs: number
}

/**
 * Renewals of the units of calls under way in a window. A store that has lost its data must learn
 * of them within the window.
 */
const renewalsPerWindow = 4
const maxRenewalMs = 3_000

/** Time (ms) since the ask after which a delayed process may soon lose its units. */
const lateMs = graceMs / 3

/** Delay (ms) before a store that does not decide is asked again. */
const awayRetryMs = 250

/**
 * The units of a third party's quotas. A call holds its units from its permit until a window after
 * its answer. The third party counts the call somewhere in between, so none of its windows has more
 * than the limit. All units are leases: the store keeps time for the whole fleet, and every unit
 * expires.
 */
export class FleetQuotas {
  readonly #limiter: CheckLimiter
  readonly #quotas: readonly QuotaUnits[]
  readonly #pause: Pause
  readonly #recovery: RecoveryWait
  /** `undefined` if the store is in this process: it cannot lose data that this process keeps. */
  readonly #lossWatch: DataLossWatch | undefined
  readonly #recent: RecentCalls
  readonly #minWindowMs: number
  readonly #maxWindowMs: number
  readonly #isWatched: boolean
  readonly #underWay = new Set<CallLease>()
  readonly #reports = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(setup: FleetSetup, pause: Pause, onRecovery: (forMs: number) => void) {
    const { name, limits, store, recovery } = setup
    this.#pause = pause
    this.#recent = new RecentCalls(limits)
    this.#minWindowMs = Math.min(...limits.map(({ windowMs }) => windowMs))
    this.#maxWindowMs = Math.max(...limits.map(({ windowMs }) => windowMs))
    this.#recovery = new RecoveryWait(limits, recovery, onRecovery)
    this.#lossWatch = isMemoryStore(store)
      ? undefined
      : new DataLossWatch(setup, this.#recovery, () => this.#reportAgain())
    // If the recovery is as long as the longest window, calls that are over have expired at its
    // end.
    this.#isWatched = this.#lossWatch !== undefined && this.#maxWindowMs > recovery
    this.#limiter = fleetLimiter(
      limits.flatMap((quota) => quotaPolicies(name, quota)),
      store,
    )
    this.#quotas = limits.flatMap((quota, index) => {
      const [underWay, over] = this.#limiter.policies.slice(2 * index)
      return underWay && over ? [new QuotaUnits(quota, underWay, over)] : []
    })
  }

  async take(cost: number): Promise<{ readonly grant: CallLease } | NoLease> {
    const pauseMs = this.#pause.leftMs
    if (pauseMs > 0) return { retryMs: Math.min(pauseMs, 1_000) }
    const askedAt = performance.now()
    const decision = await this.#limiter.decide([
      ...this.#quotas.flatMap((quota) => quota.takeChecks(cost)),
      ...this.#pause.checks,
      ...(this.#lossWatch?.checks ?? []),
    ])
    if (decision.source !== 'store') {
      this.#recovery.storeFailed()
      return { retryMs: awayRetryMs }
    }
    this.#recovery.storeAnswered()
    const isWhole = this.#lossWatch?.isWholeBy(decision) ?? true
    const rooms = this.#quotas.map((quota) => quota.read(decision))
    if (!decision.allowed) {
      const pausedMs = this.#pause.retryMsBy(decision)
      // There is more room than assumed: ask again at once.
      return { retryMs: pausedMs ?? (rooms.includes('more') ? 0 : this.#retryMs) }
    }
    const recoveryMs = this.#recovery.restMs
    const isLate = performance.now() - askedAt > lateMs
    const isRoom = this.#quotas.every((quota) => quota.holds(decision))
    if (isWhole && isRoom && recoveryMs === 0 && !isLate)
      return { grant: this.#hold(cost, decision) }
    await this.#limiter.release(decision)
    return { retryMs: recoveryMs > 0 ? Math.min(recoveryMs, awayRetryMs) : this.#retryMs }
  }

  /** Gives back the units of a call that was not made. */
  async giveBack(lease: CallLease): Promise<void> {
    this.#underWay.delete(lease)
    await this.#limiter.release(lease.decision)
  }

  /** Notes the answer of the third party. The units last one window from now. */
  answered(lease: CallLease): void {
    this.#recent.add(lease.cost)
    const report = this.#report(lease).finally(() => this.#reports.delete(report))
    this.#reports.add(report)
    background(report)
  }

  /** Notes that the third party did not answer, and may still count the call within `lateMs`. */
  async unanswered(lease: CallLease, lateMs: number): Promise<void> {
    await backgroundSleep(lateMs)
    this.answered(lease)
  }

  /**
   * Waits until the store knows of the answers that have come, for a second at most. Calls under
   * way keep their units.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#lossWatch?.close()
    await endsWithin(Promise.allSettled(this.#reports), 1_000)
  }

  /**
   * Delay (ms) before the next ask. It is short, since no process alone knows when units are free.
   */
  get #retryMs(): number {
    const evenMs = this.#minWindowMs / 50
    return Math.min(Math.max(evenMs, 5), 250) * (0.75 + Math.random() / 2)
  }

  #hold(cost: number, decision: Decision): CallLease {
    const lease: CallLease = { cost, decision, isRenewing: false }
    this.#underWay.add(lease)
    const everyMs = Math.floor(Math.min(this.#minWindowMs / renewalsPerWindow, maxRenewalMs))
    this.#timer ??= setInterval(() => this.#renewAll(), Math.max(1, everyMs)).unref()
    return lease
  }

  #renewAll(): void {
    for (const lease of this.#underWay) background(this.#renew(lease))
    const isWatching = this.#isWatched && !this.#isClosed && this.#recent.hasUnits
    if (isWatching && this.#lossWatch) background(this.#lossWatch.look())
    if (isWatching || this.#underWay.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #renew(lease: CallLease): Promise<void> {
    if (lease.isRenewing) return
    lease.isRenewing = true
    try {
      const isKept = await this.#isKept(lease.decision)
      if (isKept || !this.#underWay.has(lease)) return
      // The leases are gone, or the store fails. New leases last as long, and a lease too many is
      // safe.
      this.#recovery.storeFailed()
      const decision = await this.#charge(({ quota }) => quota.underWayCheck(lease.cost))
      if (!decision) return
      this.#recovery.dataLost()
      const before = lease.decision
      lease.decision = decision
      // The old leases may still exist.
      await this.#limiter.release(before)
    } finally {
      lease.isRenewing = false
      // The call may have ended meanwhile.
      if (!this.#underWay.has(lease)) await this.#limiter.release(lease.decision)
    }
  }

  /** Renews twice, since an answer may have been lost on its way. */
  async #isKept(decision: Decision): Promise<boolean> {
    const isKept = (await this.#limiter.renew(decision)) || (await this.#limiter.renew(decision))
    if (isKept) this.#recovery.storeAnswered()
    return isKept
  }

  /**
   * Reports that a call is over. Until the store knows it, the units count as those of a call under
   * way.
   */
  async #report(lease: CallLease): Promise<void> {
    const endsAt = performance.now() + this.#maxWindowMs + graceMs
    for (let tries = 0; performance.now() < endsAt; tries += 1) {
      if (await this.#charge(({ quota }) => quota.overCheck(lease.cost))) break
      await backgroundSleep(Math.min(50 * 2 ** tries, 1_000))
    }
    this.#underWay.delete(lease)
    await this.#limiter.release(lease.decision)
  }

  /**
   * Reports the calls that are over to a store that has lost its data. Renewals report those under
   * way.
   */
  async #reportAgain(): Promise<boolean> {
    if (!this.#recent.hasUnits) return true
    const units = this.#recent.units()
    const decision = await this.#charge(({ quota, index }) => quota.overCheck(units[index] ?? 0))
    return decision !== undefined
  }

  /** Takes units without asking; `undefined` when the store did not. */
  async #charge(
    checkOf: (of: { readonly quota: QuotaUnits; readonly index: number }) => Check,
  ): Promise<Decision | undefined> {
    const checks = this.#quotas.map((quota, index) => checkOf({ quota, index }))
    try {
      const decision = await this.#limiter.chargeChecks(checks)
      if (decision.source === 'store') {
        this.#recovery.storeAnswered()
        return decision
      }
    } catch {
      // An invalid answer means that the store did not take the units.
    }
    this.#recovery.storeFailed()
    return undefined
  }
}
