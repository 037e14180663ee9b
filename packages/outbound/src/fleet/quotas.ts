import { type Check, type Decision, isMemoryStore, type Limiter, type Store } from '@sluice/core'
import { background, backgroundSleep, repeat } from '../background.ts'
import { DataLossWatch } from './data-loss.ts'
import { fleetLimiter } from './flag.ts'
import type { Pause } from './pause.ts'
import { graceMs, type Quota, QuotaUnits, quotaPolicies } from './quota-units.ts'
import { RecentCalls } from './recent-calls.ts'
import { RecoveryWait } from './recovery-wait.ts'

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

/** So often the units of calls under way are renewed: a store that has lost its data has to hear of them before a window is over. */
const renewalsPerWindow = 4
const longestRenewalMs = 3_000

/** A process that was held up for so long since it asked may be about to lose what it was given. */
const lateMs = graceMs / 3

/** Delay (ms) before a store that does not decide is asked again. */
const awayRetryMs = 250

/**
 * The units of a third party's quotas. A call holds its units from when it is permitted until a window after its answer: wherever in between
 * the third party counted it, no window of its own has more than the limit. All units are leases, so that the store keeps time for the whole
 * fleet, and nothing stays behind for ever.
 */
export class FleetQuotas {
  readonly #limiter: Limiter
  readonly #quotas: readonly QuotaUnits[]
  readonly #pause: Pause
  readonly #recovery: RecoveryWait
  /** `undefined` where the store lives in this process, and so has forgotten nothing that this process knows. */
  readonly #lossWatch: DataLossWatch | undefined
  readonly #recent: RecentCalls
  readonly #shortestMs: number
  readonly #longestMs: number
  readonly #isWatched: boolean
  readonly #underWay = new Set<CallLease>()
  readonly #reports = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(
    setup: {
      readonly name: string
      readonly quotas: readonly Quota[]
      readonly store: Store
      readonly recoveryMs: number
    },
    pause: Pause,
    onRecovery: (forMs: number) => void,
  ) {
    const { name, quotas, store, recoveryMs } = setup
    this.#pause = pause
    this.#recent = new RecentCalls(quotas)
    this.#shortestMs = Math.min(...quotas.map(({ windowMs }) => windowMs))
    this.#longestMs = Math.max(...quotas.map(({ windowMs }) => windowMs))
    this.#recovery = new RecoveryWait(quotas, recoveryMs, onRecovery)
    this.#lossWatch = isMemoryStore(store)
      ? undefined
      : new DataLossWatch(setup, this.#recovery, () => this.#reportAgain())
    // Where no permit comes for the longest window anyway, nobody has to hear of calls that are over.
    this.#isWatched = this.#lossWatch !== undefined && this.#longestMs > recoveryMs
    this.#limiter = fleetLimiter(
      quotas.flatMap((quota) => quotaPolicies(name, quota)),
      store,
    )
    this.#quotas = quotas.flatMap((quota, index) => {
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
      // What was asked for was less than there is: asked again at once.
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

  /** For a call that was not made after all. */
  async giveBack(lease: CallLease): Promise<void> {
    this.#underWay.delete(lease)
    await this.#limiter.release(lease.decision)
  }

  /** The third party has answered: the units last one window from now. */
  answered(lease: CallLease): void {
    this.#recent.add(lease.cost)
    const report = this.#report(lease).finally(() => this.#reports.delete(report))
    this.#reports.add(report)
    background(report)
  }

  /** It has not answered, and may still count the call for so long. */
  async unanswered(lease: CallLease, lateMs: number): Promise<void> {
    await backgroundSleep(lateMs)
    this.answered(lease)
  }

  /** Waits until the store knows of the answers that have come, for a second at most. Calls under way keep their units. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#lossWatch?.close()
    await Promise.race([Promise.allSettled(this.#reports), backgroundSleep(1_000)])
  }

  /** No process alone knows when units are free, so the store is asked again after a short time. */
  get #retryMs(): number {
    const evenMs = this.#shortestMs / 50
    return Math.min(Math.max(evenMs, 5), 250) * (0.75 + Math.random() / 2)
  }

  #hold(cost: number, decision: Decision): CallLease {
    const lease: CallLease = { cost, decision, isRenewing: false }
    this.#underWay.add(lease)
    const everyMs = Math.min(this.#shortestMs / renewalsPerWindow, longestRenewalMs)
    this.#timer ??= repeat(() => this.#renewAll(), everyMs)
    return lease
  }

  #renewAll(): void {
    for (const lease of this.#underWay) background(this.#renew(lease))
    const isWatching = this.#isWatched && !this.#isClosed && this.#recent.units().some(isSome)
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
      // The leases are gone, or the store fails: new ones last as long, and one too many is no harm.
      this.#recovery.storeFailed()
      const decision = await this.#charge(({ quota }) => quota.underWayCheck(lease.cost))
      if (decision) await this.#replace(lease, decision)
    } finally {
      lease.isRenewing = false
      // It may have come to its end meanwhile.
      if (!this.#underWay.has(lease)) await this.#limiter.release(lease.decision)
    }
  }

  async #replace(lease: CallLease, decision: Decision): Promise<void> {
    this.#recovery.dataLost()
    const before = lease.decision
    lease.decision = decision
    // It may be there after all.
    await this.#limiter.release(before)
  }

  /** Asks twice, since an answer may have been lost on its way. */
  async #isKept(decision: Decision): Promise<boolean> {
    const isKept = (await this.#limiter.renew(decision)) || (await this.#limiter.renew(decision))
    if (isKept) this.#recovery.storeAnswered()
    return isKept
  }

  /** Until the store knows that the call is over, its units are those of a call under way. */
  async #report(lease: CallLease): Promise<void> {
    const endsAt = performance.now() + this.#longestMs + graceMs
    for (let tries = 0; performance.now() < endsAt; tries += 1) {
      if (await this.#charge(({ quota }) => quota.overCheck(lease.cost))) break
      await backgroundSleep(Math.min(50 * 2 ** tries, 1_000))
    }
    this.#underWay.delete(lease)
    await this.#limiter.release(lease.decision)
  }

  /** Tells a store that has lost its data of the calls that are over. Those under way tell of themselves. */
  async #reportAgain(): Promise<boolean> {
    const units = this.#recent.units()
    if (!units.some(isSome)) return true
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
      // A store that answers nonsense has not done it either.
    }
    this.#recovery.storeFailed()
    return undefined
  }
}

function isSome(units: number): boolean {
  return units > 0
}
