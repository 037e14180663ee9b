import { air } from './air.ts'
import { Pace } from './pace.ts'
import type { Waiting } from './pause.ts'

export interface Closing {
  /** When the server said to come back, on the client's clock. */
  readonly toldMs: number
  /** When the request was sent that was refused. */
  readonly sentMs: number
  readonly nowMs: number
  /** Draws what is added to `toldMs`. */
  jitterMs(): number
}

/** What an answer says about one policy. */
export interface Quota {
  readonly limit?: number | undefined
  readonly remaining?: number | undefined
  readonly resetMs?: number | undefined
  readonly windowMs?: number | undefined
}

/** The distance between calls after a refusal, as long as nothing says how many are allowed: 20 a second. */
const unknownSpacingMs = 50

/** A window of a day would space calls by minutes, although the day's quota may be there all at once. */
const maxSpacingMs = 1000

/** What a refusal of a call that was let through widens the distance by, and each call that is served narrows again. */
const widening = 1.5
const narrowing = 0.98

const maxStrain = 32

/** How long calls are spaced after a gate has opened, where no window is known, and at most. */
const unknownWindowMs = 10_000
const maxSpacedMs = 60_000

/**
 * The way to what one policy limits. It closes when a request was refused, and then lets waiting calls through one by one:
 * all of them at once would be refused again. Whoever comes takes a slot, the next one free.
 */
export class Gate {
  /** Calls that wait, in the order they came. They are woken to take new slots when the gate closes. */
  readonly waiting: Waiting = new Set()
  readonly name: string | undefined
  /** Where the policy was seen. */
  readonly routes: Set<string> = new Set()
  readonly #pace: Pace | undefined
  #limit: number | undefined
  #windowMs: number | undefined
  #toldMs = 0
  #opensMs = 0
  #nextMs = 0
  #spacedUntilMs = 0
  /** Grows with each refusal of calls that were let through one by one: others share the quota, or calls cost more. */
  #strain = 1

  constructor(name: string | undefined, { pace }: { pace: boolean }) {
    this.name = name
    if (pace) this.#pace = new Pace()
  }

  /** When the next call may go. */
  slotMs(nowMs: number): number {
    return Math.max(nowMs, this.#opensMs, this.#nextMs)
  }

  isOpen(nowMs: number): boolean {
    return nowMs >= this.#opensMs
  }

  /** Takes the next slot, also for a call that another gate holds for longer: it must not hold up those behind it. */
  take(nowMs: number): void {
    const slotMs = this.slotMs(nowMs)
    const spacingMs = slotMs < this.#spacedUntilMs ? this.#spacingMs() : 0
    const pacedMs = this.#pace?.take(slotMs, this.#spacingMs()) ?? 0
    this.#nextMs = Math.max(pacedMs, slotMs + spacingMs)
    // As long as calls come faster than they may go, the distance between them is kept.
    if (spacingMs > 0 && slotMs > nowMs) this.#spaceUntil(slotMs)
  }

  /** Notes that a call was let through and served. */
  relax(): void {
    this.#strain = Math.max(1, this.#strain * narrowing)
  }

  /** Must follow each `take`, once the call is answered or waits no more. */
  settle(): void {
    this.#pace?.settle()
  }

  close(closing: Closing): void {
    // Refusals of requests that were under way when the gate closed are no news; only the latest time counts.
    if (closing.sentMs < this.#opensMs) {
      this.#stayClosed(closing.toldMs)
      return
    }
    const { toldMs, nowMs } = closing
    const isStrained = nowMs < this.#spacedUntilMs
    this.#strain = isStrained ? Math.min(maxStrain, this.#strain * widening) : 1
    this.#toldMs = toldMs
    this.#opensMs = toldMs + closing.jitterMs()
    this.#nextMs = this.#opensMs
    // The slots that reached further are given up.
    this.#spacedUntilMs = 0
    this.#spaceUntil(this.#opensMs)
    this.#pace?.spend(this.#opensMs)
    for (const wake of [...this.waiting]) wake()
  }

  /** Slots before the new time are given up when they come: to wake all calls for each refusal of a herd would take long. */
  #stayClosed(toldMs: number): void {
    if (toldMs <= this.#toldMs) return
    this.#opensMs += toldMs - this.#toldMs
    this.#toldMs = toldMs
    this.#nextMs = Math.max(this.#nextMs, this.#opensMs)
    this.#spaceUntil(this.#opensMs)
    this.#pace?.spend(this.#opensMs)
  }

  /** Notes what an answer says of the size of the policy. */
  measure({ limit, windowMs }: Quota): void {
    this.#limit = limit ?? this.#limit
    this.#windowMs = windowMs ?? this.#windowMs
  }

  /** Notes what an answer says is left of the policy. */
  learn(quota: Quota, nowMs: number): void {
    const nextMs = this.#pace?.learn(quota, nowMs)
    if (nextMs === undefined) return
    const isPlenty = nextMs <= nowMs
    if (!isPlenty) this.#nextMs = Math.max(this.#nextMs, nextMs)
    else if (nowMs >= this.#spacedUntilMs) this.#nextMs = 0
  }

  /** For a window, and at least until the slot after the next. */
  #spaceUntil(atMs: number): void {
    const windowMs = Math.min(maxSpacedMs, this.#windowMs ?? unknownWindowMs)
    const untilMs = atMs + windowMs + this.#spacingMs()
    this.#spacedUntilMs = Math.max(this.#spacedUntilMs, untilMs)
  }

  #spacingMs(): number {
    const evenMs =
      this.#limit && this.#windowMs ? (this.#windowMs / this.#limit) * air : unknownSpacingMs
    return Math.min(maxSpacingMs, evenMs * this.#strain)
  }
}
