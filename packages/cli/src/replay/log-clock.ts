/** The global functions that the log clock replaces. */
const real = {
  now: Date.now,
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
}

interface Due {
  readonly atMs: number
  readonly number: number
  readonly callback: () => unknown
  /** Repeats, for an interval. */
  readonly everyMs?: number
}

/**
 * A clock driven by a log. While it is installed, `Date.now` and the process's timers follow it. So
 * the guard and the memory store run as in production, at the log's times.
 */
export class LogClock {
  #nowMs: number
  #number = 0
  /** By time, the next one first. */
  readonly #due: Due[] = []
  readonly #stopped = new Set<number>()

  constructor(nowMs: number) {
    this.#nowMs = nowMs
  }

  get nowMs(): number {
    return this.#nowMs
  }

  /** Makes the process follow this clock, until the returned function is called. */
  install(): () => void {
    const add = (callback: () => unknown, delayMs = 0, everyMs?: number): number =>
      this.#add({ callback, atMs: this.#nowMs + Math.max(1, delayMs), ...(everyMs && { everyMs }) })
    const stop = (timer: unknown): void => {
      if (typeof timer === 'number') this.#stopped.add(timer)
    }
    Object.assign(Date, { now: () => this.#nowMs })
    Object.assign(globalThis, {
      setTimeout: (callback: () => unknown, delayMs?: number) => add(callback, delayMs),
      setInterval: (callback: () => unknown, everyMs = 1) => add(callback, everyMs, everyMs),
      clearTimeout: stop,
      clearInterval: stop,
    })
    return () => {
      const { now, setImmediate: _, ...timers } = real
      Object.assign(Date, { now })
      Object.assign(globalThis, timers)
    }
  }

  at(atMs: number, callback: () => unknown): void {
    this.#add({ atMs: Math.max(atMs, this.#nowMs), callback })
  }

  isDueUntil(timeMs: number): boolean {
    const [next] = this.#due
    return next !== undefined && next.atMs <= timeMs
  }

  set(timeMs: number): void {
    if (timeMs > this.#nowMs) this.#nowMs = timeMs
  }

  /** Runs everything due up to a time, in order, including what follows from it. */
  async advance(timeMs: number): Promise<void> {
    for (let next = this.#due[0]; next && next.atMs <= timeMs; next = this.#due[0]) {
      this.#due.shift()
      if (this.#stopped.delete(next.number)) continue
      this.set(next.atMs)
      next.callback()
      // Refunds and renewals continue in promises.
      await new Promise((resolve) => real.setImmediate(resolve))
      const { everyMs } = next
      if (everyMs !== undefined && !this.#stopped.delete(next.number)) {
        this.#push({ ...next, atMs: next.atMs + Math.max(1, everyMs) })
      }
    }
    this.set(timeMs)
  }

  #add(due: Omit<Due, 'number'>): number {
    this.#number += 1
    this.#push({ ...due, number: this.#number })
    return this.#number
  }

  /** Timers with the same time run in the order in which they were set. */
  #push(due: Due): void {
    let [low, high] = [0, this.#due.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#due[middle]?.atMs ?? 0) <= due.atMs) low = middle + 1
      else high = middle
    }
    this.#due.splice(low, 0, due)
  }
}
