import { type Decision, type Limiter, longestTimerMs } from '@sluice/core'

/** How soon a limiter is asked again whose store did not decide. */
const unavailableRetryMs = 250

/** All workers of a queue count against one key. */
const everyWorker = 'workers'

/** A run that waits for its turn. */
interface Waiting {
  /** What is to be done with a unit at hand, before the next is asked for: so of one process at most one start is late. */
  readonly begin: () => Promise<void>
  readonly leave: (passes: boolean) => void
  readonly fail: (error: unknown) => void
}

/**
 * Where runs wait for a unit of the rate. Only the first in the row asks, so that a process asks once at a time, however many of its jobs
 * wait.
 */
export class RateGate {
  readonly #limiter: Limiter | undefined
  readonly #row = new Set<Waiting>()
  #wake: (() => void) | undefined
  #isAsking = false
  #isClosed = false

  /** @param limiter `undefined`: no rate */
  constructor(limiter: Limiter | undefined) {
    this.#limiter = limiter
  }

  get waiting(): number {
    return this.#row.size
  }

  /**
   * Resolves when a run has begun; false when the gate closes, or the run is aborted, before.
   * @param begin notes that it does; what it rejects with is thrown, and its unit is lost
   */
  async pass(signal: AbortSignal, begin: () => Promise<void>): Promise<boolean> {
    if (this.#isClosed || signal.aborted) return false
    if (!this.#limiter) {
      await begin()
      return true
    }
    const limiter = this.#limiter
    return new Promise((resolve, reject) => {
      const abort = (): void => waiting.leave(false)
      const leave = (): void => {
        this.#row.delete(waiting)
        signal.removeEventListener('abort', abort)
      }
      const waiting: Waiting = {
        begin,
        leave: (passes) => {
          leave()
          resolve(passes)
        },
        fail: (error) => {
          leave()
          reject(error)
        },
      }
      signal.addEventListener('abort', abort, { once: true })
      this.#row.add(waiting)
      void this.#askOn(limiter)
    })
  }

  /** Whoever waits does not pass. */
  close(): void {
    this.#isClosed = true
    for (const waiting of this.#row) waiting.leave(false)
    this.#wake?.()
  }

  async #askOn(limiter: Limiter): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    try {
      while (this.#row.size > 0) await this.#ask(limiter)
    } catch (error) {
      for (const waiting of this.#row) waiting.fail(error)
    } finally {
      this.#isAsking = false
    }
  }

  async #ask(limiter: Limiter): Promise<void> {
    const decision = await limiter.consume(everyWorker)
    const [first] = this.#row
    if (!decision.allowed) {
      if (first) await this.#sleep(waitMs(decision))
      return
    }
    if (!first) {
      await limiter.refund(decision)
      return
    }
    // It has its turn, and is not called back from it.
    this.#row.delete(first)
    try {
      await first.begin()
      first.leave(true)
    } catch (error) {
      first.fail(error)
    }
  }

  async #sleep(delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.min(delayMs, longestTimerMs))
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = undefined
  }
}

/** The hint for clients of a store that is away is for clients; here nobody is kept waiting longer than need be. */
function waitMs({ source, retryAfterMs }: Decision): number {
  return source === 'closed' ? unavailableRetryMs : retryAfterMs
}
