import { graceMs, type Quota } from './quota-units.ts'

/**
 * The longest that a process takes to notice that a store is back, and to tell it of the calls that it has under way. After a short outage it
 * takes less: breakers ask again within half a second, or four times as long as the store was away, and let all traffic return 2.5 s later.
 */
const noticeMs = 15_000
const shortestNoticeMs = 3_000
const noticePerAway = 4

/**
 * For how long a process permits nothing, since the store may not know of calls that count still. By a clock that never steps.
 *
 * While a store is away for long, the units of calls under way run out. What was answered before it was back counts for a window after that;
 * of the rest the store is told when it is back.
 */
export class RecoveryWait {
  readonly #windowsMs: readonly number[]
  readonly #mostMs: number
  readonly #onBegin: (forMs: number) => void
  readonly #bornAt = performance.now()
  #heardAt: number | undefined
  /** Longest recent time without the store, and when it ended. */
  #silence = { lengthMs: 0, endedAt: Number.NEGATIVE_INFINITY }
  #isAway = false
  #endsAt = 0

  /** @param mostMs longest wait, from the return of the store */
  constructor(quotas: readonly Quota[], mostMs: number, onBegin: (forMs: number) => void) {
    this.#windowsMs = quotas.map(({ windowMs }) => windowMs)
    this.#mostMs = mostMs
    this.#onBegin = onBegin
  }

  /** Rest (ms) of the wait: 0 if there is none, `Infinity` while the store is unavailable. */
  get restMs(): number {
    return this.#isAway ? Number.POSITIVE_INFINITY : Math.max(0, this.#endsAt - performance.now())
  }

  /** The store did not decide. */
  storeFailed(): void {
    this.#isAway = true
  }

  /** The store has decided. */
  storeAnswered(): void {
    const now = performance.now()
    if (this.#isAway) this.#wait(this.#afterAway(now))
    this.#isAway = false
    this.#noteSilence(now)
    this.#heardAt = now
  }

  /** The store has lost what it knew: others have to tell it of their calls, and may have to notice first that it is there. */
  dataLost(): void {
    this.#noteSilence(performance.now())
    const noticedMs = shortestNoticeMs + noticePerAway * this.#silence.lengthMs
    this.#wait(Math.max(...this.#windowsMs, Math.min(noticeMs, noticedMs)))
  }

  #noteSilence(now: number): void {
    const lengthMs = now - (this.#heardAt ?? this.#bornAt)
    if (lengthMs < this.#silence.lengthMs && now - this.#silence.endedAt < noticeMs) return
    this.#silence = { lengthMs, endedAt: now }
  }

  /** No units run out in a third of the time that they last: the rest is for renewing them before, and for noticing after. */
  #afterAway(now: number): number {
    const awayMs = this.#heardAt === undefined ? Number.POSITIVE_INFINITY : now - this.#heardAt
    const windowsMs = this.#windowsMs.filter((windowMs) => (windowMs + graceMs) / 3 <= awayMs)
    if (windowsMs.length === 0) return 0
    return Math.max(...windowsMs, Math.min(noticeMs, now - (this.#heardAt ?? this.#bornAt)))
  }

  #wait(neededMs: number): void {
    const now = performance.now()
    const forMs = Math.min(neededMs, this.#mostMs)
    if (forMs > 0 && this.#endsAt <= now) this.#onBegin(Math.ceil(forMs))
    this.#endsAt = Math.max(this.#endsAt, now + forMs)
  }
}
