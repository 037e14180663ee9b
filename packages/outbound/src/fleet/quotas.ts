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
import { RecoveryWait } from './recovery-wait.ts'

/** The outbound options that a whole fleet shares. */
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
  /** The decision whose leases the call holds. */
  decision: Decision
  /** True while the leases are being renewed. */
  isRenewing: boolean
}

/**
 * Renewals per window of units for calls in flight. A store that has lost its data must learn about
 * them within the window.
 */
const renewalsPerWindow = 4
const maxRenewalMs = 3_000

/** Time (ms) after a request from which a delayed process risks losing its units. */
const lateMs = graceMs / 3

/** Delay (ms) before a failing store is called again, and maximum delay in a pause. */
const awayRetryMs = 250
const maxRetryMs = 1_000

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
    this.#minWindowMs = Math.min(...limits.map(({ windowMs }) => windowMs))
    this.#maxWindowMs = Math.max(...limits.map(({ windowMs }) => windowMs))
    this.#recovery = new RecoveryWait(limits, recovery, onRecovery)
    this.#lossWatch = isMemoryStore(store)
      ? undefined
      : new DataLossWatch(setup, this.#recovery, () => this.#reportAgain())
    // If the recovery is as long as the longest window, calls that are over have expired at its
    // end.
    this.#isWatched = this.#lossWatch !== undefined && this.#maxWindowMs > recovery
    const policies = limits.flatMap((quota) => quotaPolicies(name, quota))
    this.#limiter = fleetLimiter({ policies, store })
    this.#quotas = limits.flatMap((quota, index) => {
      const [underWay, over] = this.#limiter.policies.slice(2 * index)
      return underWay && over ? [new QuotaUnits(quota, underWay, over)] : []
    })
  }

  /** Takes the units of a call, or returns the ms after which to try again. */
  async ask(cost: number): Promise<{ readonly grant: CallLease } | { readonly retryMs: number }> {
    const pauseMs = this.#pause.leftMs
    if (pauseMs > 0) return { retryMs: Math.min(pauseMs, maxRetryMs) }
    const askedAt = performance.now()
    const decision = await this.#limiter.decide([
      ...this.#quotas.flatMap((quota) => quota.takeChecks(cost)),
      ...this.#pause.flag.checks(1),
      ...(this.#lossWatch?.flag.checks(0) ?? []),
    ])
    if (decision.source !== 'store') {
      this.#recovery.storeFailed()
      return { retryMs: awayRetryMs }
    }
    this.#recovery.storeAnswered()
    const isWhole = this.#lossWatch?.isWholeBy(decision) ?? true
    const rooms = this.#quotas.map((quota) => quota.read(decision))
    if (!decision.allowed) {
      const pausedMs = this.#pause.flag.leftMsBy(decision)
      if (pausedMs > 0) return { retryMs: Math.min(pausedMs, maxRetryMs) }
      // There is more room than assumed: try again at once.
      return { retryMs: rooms.includes('more') ? 0 : this.#retryMs }
    }
    const recoveryMs = this.#recovery.restMs
    const isLate = performance.now() - askedAt > lateMs
    const isRoom = this.#quotas.every((quota) => quota.holds(decision))
    if (isWhole && isRoom && recoveryMs === 0 && !isLate && this.#pause.leftMs === 0) {
      const grant = { cost, decision, isRenewing: false }
      this.#underWay.add(grant)
      this.#timer ??= setInterval(() => this.#renewAll(), this.#renewMs).unref()
      return { grant }
    }
    await this.#limiter.release(decision)
    return { retryMs: recoveryMs > 0 ? Math.min(recoveryMs, awayRetryMs) : this.#retryMs }
  }

  /** Gives back the units of a call that was not made. */
  async giveBack(lease: CallLease): Promise<void> {
    this.#underWay.delete(lease)
    await this.#limiter.release(lease.decision)
  }

  /** Records that the third party has counted a call. The units last one window from now. */
  answered(lease: CallLease): void {
    for (const { recent } of this.#quotas) recent.add(lease.cost)
    const report = this.#report(lease).finally(() => this.#reports.delete(report))
    this.#reports.add(report)
    background(report)
  }

  /**
   * Waits, for at most a second, until the store knows the answers so far. Calls in flight keep
   * their units.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#lossWatch?.close()
    await endsWithin(Promise.allSettled(this.#reports), 1_000)
  }

  /**
   * Delay (ms) before the next try. It is short, since no process alone knows when units are free.
   */
  get #retryMs(): number {
    const evenMs = this.#minWindowMs / 50
    return Math.min(Math.max(evenMs, 5), 250) * (0.75 + Math.random() / 2)
  }

  get #renewMs(): number {
    return Math.max(1, Math.floor(Math.min(this.#minWindowMs / renewalsPerWindow, maxRenewalMs)))
  }

  #renewAll(): void {
    for (const lease of this.#underWay) background(this.#renew(lease))
    const isWatching = this.#isWatched && !this.#isClosed && this.#hasRecent
    if (isWatching && this.#lossWatch) background(this.#lossWatch.look())
    if (isWatching || this.#underWay.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #renew(lease: CallLease): Promise<void> {
    if (lease.isRenewing) return
    lease.isRenewing = true
    try {
      const renew = (): Promise<boolean> => this.#limiter.renew(lease.decision)
      // Twice, since an answer may have been lost on its way.
      const isKept = (await renew()) || (await renew())
      if (isKept) this.#recovery.storeAnswered()
      if (isKept || !this.#underWay.has(lease)) return
      // The leases are gone, or the store fails. New leases last as long, and an extra lease is
      // safe.
      this.#recovery.storeFailed()
      const decision = await this.#charge((quota) => quota.underWayCheck(lease.cost))
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

  /**
   * Reports that a call is over. Until the store knows it, its units count as for a call in flight.
   */
  async #report(lease: CallLease): Promise<void> {
    const endsAt = performance.now() + this.#maxWindowMs + graceMs
    for (let tries = 0; performance.now() < endsAt; tries += 1) {
      if (await this.#charge((quota) => quota.overCheck(lease.cost))) break
      await backgroundSleep(Math.min(50 * 2 ** tries, 1_000))
    }
    this.#underWay.delete(lease)
    await this.#limiter.release(lease.decision)
  }

  /** Reports finished calls to a store that has lost its data. Renewals report calls in flight. */
  async #reportAgain(): Promise<boolean> {
    if (!this.#hasRecent) return true
    return !!(await this.#charge((quota) => quota.overCheck(quota.recent.sum)))
  }

  get #hasRecent(): boolean {
    return this.#quotas.some(({ recent }) => recent.sum > 0)
  }

  /** Takes units unconditionally; `undefined` if the store did not. */
  async #charge(checkOf: (quota: QuotaUnits) => Check): Promise<Decision | undefined> {
    try {
      const decision = await this.#limiter.chargeChecks(this.#quotas.map(checkOf))
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
