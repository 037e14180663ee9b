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

/** Timers and networks squeeze calls together; this much air keeps a steady stream within its limit. */
const air = 1.1

/** What a refusal of a call that was let through widens the distance by, and each call after it narrows again. */
const widening = 1.5
const narrowing = 0.98

/** How long calls are spaced after a gate has opened, where no window is known. */
const unknownWindowMs = 10_000

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
  readonly #pace: boolean
  #quota: Quota = {}
  #toldMs = 0
  #opensMs = 0
  #nextMs = 0
  #spacedUntilMs = 0
  #paceMs = 0
  /** Grows with each refusal of calls that were let through one by one: others share the quota, or calls cost more. */
  #strain = 1

  constructor(name: string | undefined, options: { pace: boolean }) {
    this.name = name
    this.#pace = options.pace
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
    this.#nextMs = slotMs + this.#spacingMs(slotMs)
    this.#strain = Math.max(1, this.#strain * narrowing)
    // As long as calls come faster than they may go, the distance between them is kept.
    if (slotMs > nowMs) this.#spaceUntil(slotMs)
  }

  close({ toldMs, sentMs, nowMs, jitterMs }: Closing): void {
    // Refusals of requests that were under way when the gate closed are no news; only the latest time counts.
    const isNews = sentMs >= this.#opensMs
    if (isNews) this.#strain = nowMs < this.#spacedUntilMs ? this.#strain * widening : 1
    if (!isNews && toldMs <= this.#toldMs) return
    const addedMs = isNews ? jitterMs() : this.#opensMs - this.#toldMs
    this.#toldMs = toldMs
    this.#shut(toldMs + addedMs)
  }

  /** Notes what is left of the policy, for the distance between calls. */
  learn(quota: Quota, nowMs: number): void {
    this.#quota = { ...this.#quota, ...known(quota) }
    const { limit, remaining, resetMs } = quota
    if (!this.#pace || remaining === undefined || resetMs === undefined) return
    if (remaining === 0 && nowMs + resetMs > this.#opensMs) this.#shut(nowMs + resetMs)
    const isNear = limit === undefined || remaining <= limit / 2
    this.#paceMs = isNear ? resetMs / Math.max(1, remaining) : 0
  }

  #shut(untilMs: number): void {
    this.#opensMs = untilMs
    this.#nextMs = untilMs
    this.#spaceUntil(untilMs)
    for (const wake of [...this.waiting]) wake()
  }

  #spaceUntil(atMs: number): void {
    this.#spacedUntilMs = atMs + (this.#quota.windowMs ?? unknownWindowMs)
  }

  #spacingMs(atMs: number): number {
    if (atMs >= this.#spacedUntilMs) return this.#paceMs
    const { limit, windowMs } = this.#quota
    const evenMs = limit && windowMs ? (windowMs / limit) * air : unknownSpacingMs
    const recoveryMs = Math.min(maxSpacingMs, evenMs * this.#strain)
    return Math.max(this.#paceMs, recoveryMs)
  }
}

function known(quota: Quota): Quota {
  return Object.fromEntries(Object.entries(quota).filter(([, value]) => value !== undefined))
}
