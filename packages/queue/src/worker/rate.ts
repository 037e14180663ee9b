import { type Decision, type Limiter, TurnQueue } from '@sluice/core'

/** Delay (ms) before a limiter is asked again after its store did not decide. */
const unavailableRetryMs = 250

/** The key that all workers of a queue count against. */
const everyWorker = 'workers'

/** Lets runs wait for a unit of the rate that all workers of the queue share. */
export class StartRate {
  readonly #turns: TurnQueue<Decision> | undefined
  #isClosed = false

  /** @param limiter `undefined`: no rate */
  constructor(limiter: Limiter | undefined) {
    if (!limiter) return
    this.#turns = new TurnQueue({
      async ask() {
        const decision = await limiter.consume(everyWorker)
        return decision.allowed ? { grant: decision } : { retryMs: retryMs(decision) }
      },
      giveBack: (decision) => limiter.refund(decision),
    })
  }

  /** Number of waiting runs. */
  get waiting(): number {
    return this.#turns?.waiting ?? 0
  }

  /**
   * Resolves to `true` when a run has begun, and to `false` if the worker closes or the run is
   * aborted before.
   * @param begin notes that the run begins. Until `begin` has resolved, no other run of this
   * process has a unit, so at most one start is late. If `begin` rejects, so does the wait, and its
   * unit is lost.
   */
  async pass(signal: AbortSignal, begin: () => Promise<void>): Promise<boolean> {
    if (this.#isClosed || signal.aborted) return false
    if (this.#turns) return 'grant' in (await this.#turns.wait({ signal, begin }))
    await begin()
    return true
  }

  /** Refuses all waiting runs, and each later one. */
  close(): void {
    this.#isClosed = true
    this.#turns?.close()
  }
}

/**
 * Returns the delay (ms) before the next ask. The `Retry-After` of a store that is away is for
 * clients; a worker may ask sooner.
 */
function retryMs({ source, retryAfterMs }: Decision): number {
  return source === 'closed' ? unavailableRetryMs : retryAfterMs
}
