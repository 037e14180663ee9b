import { graceMs, type Quota } from './quota-units.ts'

/**
 * Maximum time (ms) until a process notices that a store is back, and has reported its calls in
 * flight. It is shorter after a short outage. Circuit breakers probe again within half a second, or
 * within four times the outage. All traffic is back 2.5 s later.
 */
const noticeMs = 15_000
const minNoticeMs = 3_000
const noticePerAway = 4

/**
 * The time in which a process permits nothing, since the store may not know all calls that count.
 * Uses a clock that never steps.
 *
 * In a long outage of the store, the units of calls in flight expire. A call that is answered
 * before the store is back counts for a window. The other calls are reported when it is back.
 */
export class RecoveryWait {
  readonly #windowsMs: readonly number[]
  readonly #maxMs: number
  readonly #onBegin: (forMs: number) => void
  readonly #bornAt = performance.now()
  #heardAt: number | undefined
  /** Longest recent time without the store, and when it ended. */
  #silence = { lengthMs: 0, endedAt: Number.NEGATIVE_INFINITY }
  #isAway = false
  #endsAt = 0

  /** @param maxMs maximum wait after the store is back */
  constructor(quotas: readonly Quota[], maxMs: number, onBegin: (forMs: number) => void) {
    this.#windowsMs = quotas.map(({ windowMs }) => windowMs)
    this.#maxMs = maxMs
    this.#onBegin = onBegin
  }

  /** Rest (ms) of the wait: 0 if there is none, `Infinity` while the store is unavailable. */
  get restMs(): number {
    return this.#isAway ? Number.POSITIVE_INFINITY : Math.max(0, this.#endsAt - performance.now())
  }

  /** Records that the store failed. */
  storeFailed(): void {
    this.#isAway = true
  }

  /** Records that the store has decided. */
  storeAnswered(): void {
    const now = performance.now()
    if (this.#isAway) this.#wait(this.#afterAway(now))
    this.#isAway = false
    this.#noteSilence(now)
    this.#heardAt = now
  }

  /**
   * Records that the store has lost its data. Other processes must notice it and report their
   * calls.
   */
  dataLost(): void {
    this.#noteSilence(performance.now())
    const noticedMs = minNoticeMs + noticePerAway * this.#silence.lengthMs
    this.#wait(Math.max(...this.#windowsMs, Math.min(noticeMs, noticedMs)))
  }

  #noteSilence(now: number): void {
    const lengthMs = now - (this.#heardAt ?? this.#bornAt)
    if (lengthMs < this.#silence.lengthMs && now - this.#silence.endedAt < noticeMs) return
    this.#silence = { lengthMs, endedAt: now }
  }

  /**
   * Returns the wait (ms) after an outage of the store. No units expire within a third of their
   * lifetime: the rest is for the renewal before and the detection after.
   */
  #afterAway(now: number): number {
    const awayMs = this.#heardAt === undefined ? Number.POSITIVE_INFINITY : now - this.#heardAt
    const windowsMs = this.#windowsMs.filter((windowMs) => (windowMs + graceMs) / 3 <= awayMs)
    if (windowsMs.length === 0) return 0
    return Math.max(...windowsMs, Math.min(noticeMs, now - (this.#heardAt ?? this.#bornAt)))
  }

  #wait(neededMs: number): void {
    const now = performance.now()
    const forMs = Math.min(neededMs, this.#maxMs)
    if (forMs > 0 && this.#endsAt <= now) this.#onBegin(Math.ceil(forMs))
    this.#endsAt = Math.max(this.#endsAt, now + forMs)
  }
}
