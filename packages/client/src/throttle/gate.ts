import { Burst } from './burst.ts'
import { type Moment, Pace, type Quota, withMargin } from './pace.ts'

export interface Closing {
  /** Time at which the server wants the client back, on the client's clock. */
  readonly toldMs: number
  /** Time at which the refused request was sent. */
  readonly sentMs: number
  readonly nowMs: number
  /** Returns a random jitter to add to `toldMs`. */
  jitterMs(): number
}

/** End of a call at its gates. `failed`: it has no answer, or was not sent. */
export type CallEnd = 'served' | 'refused' | 'failed'

/** Distance (ms) between calls after a refusal while the limit is unknown: 20 calls a second. */
const unknownSpacingMs = 50

/** Maximum distance (ms) between calls: a window of a day would space them by minutes. */
const maxSpacingMs = 1000

/** Factor by which a refusal widens the spacing; each served call narrows it again. */
const widening = 1.5
const narrowing = 0.98

const maxSlowdown = 32

/**
 * Minimum window, in round trips, for a burst. Bursts double with each trip, so one takes about
 * seven trips; in a shorter window, even spacing is as fast.
 */
const minTripsOfWindow = 60

/** Time (ms) for which calls are spaced after a gate has opened: by default, and at most. */
const unknownWindowMs = 10_000
const maxSpacedMs = 60_000

/** Lateness (ms) of a call up to which the next call is not delayed. */
const latenessMs = 20

/** Maximum time (ms) that a gate is closed: 20 days, Sluice's longest `Retry-After`. */
const maxClosedMs = 1_728_000_000

/**
 * Gate for one policy that a server enforces. It closes after a refusal. Then it lets waiting calls
 * through as fast as the policy has units, never all at once.
 */
export class Gate {
  readonly name: string | undefined
  /** Routes on which the policy was seen. */
  readonly routes: Set<string> = new Set()
  readonly #pace: Pace | undefined
  readonly #burst = new Burst()
  #limit: number | undefined
  #windowMs: number | undefined
  #toldMs = 0
  #opensMs = 0
  #holds = 0
  #heldUntilMs = 0
  #nextMs = 0
  #spacedUntilMs = 0
  /** Calls that passed and have no answer yet. */
  #underWay = 0
  /** Grows with each refusal after opening: others share the quota, or calls cost more. */
  #slowdown = 1

  constructor(name: string | undefined, { pace }: { pace: boolean }) {
    this.name = name
    if (pace) this.#pace = new Pace()
  }

  /** Time at which the next call may go. */
  get clearMs(): number {
    const { isOpen, spentUntilMs } = this.#burst
    return Math.max(this.#opensMs, this.heldMs, isOpen ? 0 : Math.max(this.#nextMs, spentUntilMs))
  }

  /** Time at which the next call should go to keep the pace. */
  get pacedMs(): number {
    return Math.max(this.clearMs, this.#pace?.readyMs(this.#evenMs()) ?? 0)
  }

  /** Time of the reset, after which the pace has nothing left to spread. */
  get resetMs(): number {
    return this.#pace?.resetMs ?? 0
  }

  isOpen(nowMs: number): boolean {
    return nowMs >= Math.max(this.#opensMs, this.heldMs)
  }

  /** Time until which it is unknown whether the gate must close. */
  get heldMs(): number {
    return this.#holds > 0 ? this.#heldUntilMs : 0
  }

  /** Blocks all calls until `untilMs`, or until the returned function is called. */
  hold(untilMs: number): () => void {
    this.#holds += 1
    this.#heldUntilMs = Math.max(this.#heldUntilMs, untilMs)
    return () => {
      this.#holds -= 1
    }
  }

  /** True if the gate is closed, or lets calls through one by one. */
  isBusy(nowMs: number): boolean {
    return nowMs < Math.max(this.#opensMs, this.#spacedUntilMs)
  }

  /** Minimum time (ms) between two calls. */
  spacingMs(nowMs: number): number {
    return nowMs < this.#spacedUntilMs ? this.#gapMs() : 0
  }

  /** Minimum time (ms) between two calls that keep the pace, if the first is sent at `atMs`. */
  distanceMs(atMs: number, nowMs: number): number {
    return Math.max(this.spacingMs(nowMs), this.#pace?.distanceMs(atMs, this.#evenMs()) ?? 0)
  }

  /** Lets a call through, which must `settle` later. */
  pass(nowMs: number, { hasWaited }: { hasWaited: boolean }): void {
    const onTimeMs = nowMs - latenessMs
    this.#underWay += 1
    this.#pace?.take(Math.min(nowMs, Math.max(this.pacedMs, onTimeMs)))
    if (nowMs >= this.#spacedUntilMs) return
    if (!this.#burst.isOpen) this.#nextMs = Math.max(this.clearMs, onTimeMs) + this.#gapMs()
    this.#burst.take()
    // The spacing lasts as long as calls have to wait.
    if (hasWaited) this.#spaceUntil(nowMs)
  }

  /** Must follow each `pass`, once the call has an answer or has failed. */
  settle(end: CallEnd): void {
    this.#underWay -= 1
    if (end === 'failed') this.#pace?.giveBack()
    if (end === 'served') this.#slowdown = Math.max(1, this.#slowdown * narrowing)
  }

  close(closing: Closing): void {
    const { sentMs, nowMs } = closing
    const toldMs = Math.min(closing.toldMs, nowMs + maxClosedMs)
    // Requests in flight when the gate closed may be refused too. Only the latest of their times
    // counts.
    if (sentMs < this.#opensMs) {
      if (toldMs <= this.#toldMs) return
      this.#opensMs += toldMs - this.#toldMs
    } else {
      this.#slowdown =
        nowMs < this.#spacedUntilMs ? Math.min(maxSlowdown, this.#slowdown * widening) : 1
      this.#opensMs = toldMs + closing.jitterMs()
      this.#nextMs = this.#opensMs
      // The spacing from before this refusal ends.
      this.#spacedUntilMs = 0
      this.#burst.end()
    }
    this.#toldMs = toldMs
    this.#spaceUntil(this.#opensMs)
    this.#pace?.spend(this.#opensMs)
  }

  /**
   * Records limit and window of the policy, and its remaining units if the answer has a `moment`.
   * Returns true if this may change the times of waiting calls.
   */
  learn({ limit, windowMs, remaining, resetMs }: Quota, moment: Moment | undefined): boolean {
    this.#limit = limit ?? this.#limit
    this.#windowMs = windowMs ?? this.#windowMs
    if (moment === undefined || remaining === undefined || resetMs === undefined) return false
    const { nowMs, tookMs, waiting } = moment
    const underWay = this.#underWay
    let mayGo = false
    if (nowMs < this.#spacedUntilMs) {
      const isQuick = tookMs * minTripsOfWindow <= (this.#windowMs ?? unknownWindowMs)
      const allowed = isQuick ? 2 / this.#slowdown : 0
      mayGo = this.#burst.learn({ remaining, underWay, resetMs: nowMs + resetMs, allowed })
      this.#spaceUntil(this.#burst.spentUntilMs)
    }
    const known = { limit: this.#limit, remaining, resetMs }
    const isPaced = this.#pace?.learn(known, remaining - underWay, moment) === true
    return isPaced || (waiting > 0 && mayGo)
  }

  /** Spaces calls for a window from `atMs` on, and for at least two calls. */
  #spaceUntil(atMs: number): void {
    const windowMs = Math.min(maxSpacedMs, this.#windowMs ?? unknownWindowMs)
    const untilMs = atMs + windowMs + this.#gapMs()
    this.#spacedUntilMs = Math.max(this.#spacedUntilMs, untilMs)
  }

  #gapMs(): number {
    return Math.min(maxSpacingMs, this.#evenMs())
  }

  /** Distance (ms) between calls at the policy's own rate, widened by refusals. */
  #evenMs(): number {
    const evenMs =
      this.#limit && this.#windowMs ? withMargin(this.#windowMs / this.#limit) : unknownSpacingMs
    return evenMs * this.#slowdown
  }
}
