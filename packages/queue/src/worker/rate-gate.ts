import type { Decision, Limiter } from '@sluice/core'

/** How soon a limiter is asked again whose store did not decide. */
const unavailableRetryMs = 250

/** The longest that a timer of Node runs. */
const longestTimerMs = 2 ** 31 - 1

/** All workers of a queue count against one key. */
const everyWorker = 'workers'

/**
 * Where runs wait for a unit of the rate. Only the first in the row asks, so that a process asks once at a time, however many of its jobs
 * wait.
 */
export class RateGate {
  readonly #limiter: Limiter | undefined
  readonly #row = new Set<(passes: boolean) => void>()
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

  /** Resolves when a run may start; false when the gate closes, or the run is aborted, before. */
  async pass(signal: AbortSignal): Promise<boolean> {
    if (this.#isClosed || signal.aborted) return false
    if (!this.#limiter) return true
    return new Promise((resolve) => {
      const answer = (passes: boolean): void => {
        this.#row.delete(answer)
        signal.removeEventListener('abort', leave)
        resolve(passes)
      }
      const leave = (): void => answer(false)
      signal.addEventListener('abort', leave, { once: true })
      this.#row.add(answer)
      void this.#ask(this.#limiter)
    })
  }

  /** Whoever waits does not pass. */
  close(): void {
    this.#isClosed = true
    for (const answer of this.#row) answer(false)
    this.#wake?.()
  }

  async #ask(limiter: Limiter | undefined): Promise<void> {
    if (this.#isAsking || !limiter) return
    this.#isAsking = true
    while (this.#row.size > 0) {
      const decision = await limiter.consume(everyWorker)
      const [first] = this.#row
      if (!decision.allowed) await this.#sleep(waitMs(decision))
      else if (first) first(true)
      else await limiter.refund(decision)
    }
    this.#isAsking = false
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
