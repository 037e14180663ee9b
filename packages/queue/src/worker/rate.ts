import { type Decision, type Limiter, TurnQueue } from '@sluice/core'

/** Delay (ms) before a limiter is asked again after its store did not decide. */
const unavailableRetryMs = 250

/** The key that all workers of a queue count against. */
const everyWorker = 'workers'

/**
 * - `begun`: the run has a unit, and `begin` has resolved
 * - `refused`: the worker closes, or the run was aborted
 * - `later`: the rate has no unit for a run within `delayMs`
 */
export type Pass =
  | { readonly outcome: 'begun' | 'refused' }
  | { readonly outcome: 'later'; readonly delayMs: number }

/** Lets runs wait for a unit of the rate that all workers of the queue share. */
export class StartRate {
  readonly #turns: TurnQueue<Decision> | undefined
  readonly #maxHeldMs: number | undefined
  /** Time of the next unit, as far as it is known. */
  #nextAt = 0
  #isClosed = false

  /**
   * @param limiter `undefined`: no rate
   * @param maxHeldMs the longest wait (ms) of a run. @default any time
   */
  constructor(limiter: Limiter | undefined, maxHeldMs?: number) {
    this.#maxHeldMs = maxHeldMs
    if (!limiter) return
    const turns = new TurnQueue<Decision>({
      ask: async () => {
        const decision = await limiter.consume(everyWorker)
        if (decision.allowed) return { grant: decision }
        const waitMs = retryMs(decision)
        this.#nextAt = performance.now() + waitMs
        // Nobody can begin in time.
        if (this.#isTooLong(waitMs)) turns.close()
        return { retryMs: waitMs }
      },
      giveBack: (decision) => limiter.refund(decision),
    })
    this.#turns = turns
  }

  /** Number of waiting runs. */
  get waiting(): number {
    return this.#turns?.waiting ?? 0
  }

  /**
   * Resolves when a run has begun, or when it cannot begin now.
   * @param begin notes that the run begins. Until `begin` has resolved, no other run of this
   * process has a unit, so at most one start is late. If `begin` rejects, so does the wait, and its
   * unit is lost.
   */
  async pass(signal: AbortSignal, begin: () => Promise<void>): Promise<Pass> {
    if (this.#isClosed || signal.aborted) return { outcome: 'refused' }
    if (!this.#turns) {
      await begin()
      return { outcome: 'begun' }
    }
    if (this.#isTooLong(this.#nextInMs())) return this.#later()
    const maxWaitMs = this.#maxHeldMs
    const bound = maxWaitMs === undefined ? {} : { maxWaitMs }
    const turn = await this.#turns.wait({ signal, begin, ...bound })
    if ('grant' in turn) return { outcome: 'begun' }
    return this.#isClosed || turn.left === 'aborted' ? { outcome: 'refused' } : this.#later()
  }

  /** Refuses all waiting runs, and each later one. */
  close(): void {
    this.#isClosed = true
    this.#turns?.close()
  }

  #isTooLong(waitMs: number): boolean {
    return this.#maxHeldMs !== undefined && waitMs > this.#maxHeldMs
  }

  #nextInMs(): number {
    return Math.max(0, this.#nextAt - performance.now())
  }

  #later(): Pass {
    return { outcome: 'later', delayMs: this.#nextInMs() }
  }
}

/**
 * Returns the delay (ms) before the next ask. The `Retry-After` of a store that is away is for
 * clients; a worker may ask sooner.
 */
function retryMs({ source, retryAfterMs }: Decision): number {
  return source === 'closed' ? unavailableRetryMs : retryAfterMs
}
