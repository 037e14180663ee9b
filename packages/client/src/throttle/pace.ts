/** Maximum distance (ms) between calls while units are left. */
const maxDistanceMs = 10_000

/** One policy, as described in an answer. */
export interface Quota {
  readonly limit?: number | undefined
  readonly remaining?: number | undefined
  readonly resetMs?: number | undefined
  readonly windowMs?: number | undefined
}

/** A policy with its remaining units. */
type Known = Quota & { readonly remaining: number; readonly resetMs: number }

export interface Moment {
  readonly nowMs: number
  /** Time (ms) until the answer. */
  readonly tookMs: number
  /** Calls that wait for the policy. */
  readonly waiting: number
}

/**
 * Estimates the remaining units of a policy: the number in the last answer, minus the calls in
 * flight. The first half of a quota may be used at once. The second half is spread over the rest of
 * the window. Later calls are spaced evenly until an answer has new numbers.
 */
export class Pace {
  #limit = 0
  #left = 0
  #resetMs = 0
  #lastMs = 0

  /** Time at which the policy has more units. */
  get resetMs(): number {
    return this.#resetMs
  }

  /** Time for the next call at this pace. The server may admit it earlier. */
  readyMs(evenMs: number): number {
    return this.#isPlenty() ? 0 : this.#lastMs + this.distanceMs(this.#lastMs, evenMs)
  }

  /** Distance (ms) from a call sent at `atMs` to the next one; `evenMs` after the reset. */
  distanceMs(atMs: number, evenMs: number): number {
    if (this.#isPlenty()) return 0
    if (atMs >= this.#resetMs) return Math.min(maxDistanceMs, evenMs)
    const restMs = this.#resetMs - this.#lastMs
    return this.#left > 0 ? Math.min(maxDistanceMs, restMs / (this.#left + 1)) : restMs
  }

  take(atMs: number): void {
    this.#left -= 1
    this.#lastMs = atMs
  }

  /** Gives back the unit of a call that had no answer. */
  giveBack(): void {
    this.#left += 1
  }

  /** Corrects the estimate with an answer. Returns false if it is unchanged. */
  learn({ limit, remaining, resetMs }: Known, left: number, { nowMs, waiting }: Moment): boolean {
    this.#limit = limit ?? Math.max(this.#limit, remaining)
    // The waiting calls already have times. The reset of a sliding window is always a window ahead,
    // so each answer would delay them again, down to half the rate.
    if (waiting > 0 && left <= waiting) return false
    this.#left = left
    this.#resetMs = nowMs + withMargin(resetMs)
    this.#lastMs ||= nowMs
    return true
  }

  /** Records that nothing is left until `untilMs`. */
  spend(untilMs: number): void {
    this.#left = 0
    this.#resetMs = untilMs
  }

  #isPlenty(): boolean {
    return this.#left > this.#limit / 2
  }
}

/** Margin, as a share of a wait: timers and networks squeeze calls together. */
const margin = 0.1

/** Maximum margin (ms): a tenth of a day would be hours. */
const maxMarginMs = 2000

export function withMargin(ms: number): number {
  return ms + Math.min(ms * margin, maxMarginMs)
}
