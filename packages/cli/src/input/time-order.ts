import type { LogRequest } from '../formats/log-request.ts'

/** The most requests that wait for others, so that a busy log takes no more memory. */
const maxWaiting = 65_536
/** The most requests that were taken, and are still in the list. */
const maxTaken = 8_192

/**
 * Puts requests in the order of their times, within a window: logs have them in the order of their
 * responses. A request that comes later than that is taken at the time of its place.
 */
export class TimeOrder {
  /** Requests that came too late to be put in order. */
  late = 0
  readonly #windowMs: number
  /** In order; of one time as they came. */
  #waiting: LogRequest[] = []
  /** Requests at the begin of the list that were taken. */
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

  /** Takes the requests that none can come before any more. */
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
    // The rest is moved now and then, and not for each piece.
    if (place === this.#waiting.length || place > maxTaken) {
      this.#waiting = this.#waiting.slice(place)
      this.#taken = 0
    }
    this.#takenMs = taken.at(-1)?.startMs ?? this.#takenMs
    return taken
  }

  /** The place after all requests up to a time. */
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
