import type { LogRequest } from '../formats/log-request.ts'

/** Maximum number of requests held for sorting, to bound the memory for a busy log. */
const maxWaiting = 65_536
/** Maximum number of taken requests still in the list. */
const maxTaken = 8_192

/**
 * Sorts requests by time, within a window: logs list them in the order of their responses. A
 * request that comes later than that gets the time of its place.
 */
export class TimeOrder {
  /** Requests that came too late to be sorted. */
  late = 0
  readonly #windowMs: number
  /** Sorted; for equal times, in order of arrival. */
  #waiting: LogRequest[] = []
  /** Number of requests already taken from the start of the list. */
  #taken = 0
  #takenMs = Number.NEGATIVE_INFINITY

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  add(request: LogRequest): void {
    if (request.startMs < this.#takenMs) {
      this.late += 1
      request.startMs = this.#takenMs
    }
    const waiting = this.#waiting
    const last = waiting.at(-1)
    if (!last || last.startMs <= request.startMs) waiting.push(request)
    else waiting.splice(this.#placeOf(request.startMs), 0, request)
  }

  /** Takes the requests that no later one can precede. */
  take(): readonly LogRequest[] {
    const last = this.#waiting.at(-1)
    if (!last) return []
    const place = this.#placeOf(last.startMs - this.#windowMs)
    return this.#takeUntil(Math.max(place, this.#waiting.length - maxWaiting))
  }

  takeAll(): readonly LogRequest[] {
    return this.#takeUntil(this.#waiting.length)
  }

  #takeUntil(place: number): readonly LogRequest[] {
    if (place <= this.#taken) return []
    const taken = this.#waiting.slice(this.#taken, place)
    this.#taken = place
    // The rest is moved now and then, not for every piece.
    if (place === this.#waiting.length || place > maxTaken) {
      this.#waiting = this.#waiting.slice(place)
      this.#taken = 0
    }
    this.#takenMs = taken.at(-1)?.startMs ?? this.#takenMs
    return taken
  }

  /** Returns the index after all requests up to a time. */
  #placeOf(timeMs: number): number {
    let low = this.#taken
    let high = this.#waiting.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#waiting[middle]?.startMs ?? 0) <= timeMs) low = middle + 1
      else high = middle
    }
    return low
  }
}
