import { type Decision, type Limiter, TurnQueue } from '@sluice/core'

/** Delay (ms) before the next check after the limiter's store failed. */
const unavailableRetryMs = 250

/** The key shared by all workers of a queue. */
const everyWorker = 'workers'

/**
 * - `begun`: the run has a unit, and `begin` has resolved
 * - `refused`: the worker is closing, or the run was aborted
 * - `later`: the rate has no unit for a run within `delayMs`
 */
type Pass =
  | { readonly outcome: 'begun' | 'refused' }
  | { readonly outcome: 'later'; readonly delayMs: number }

/** Lets runs wait for a unit of the rate that all workers of the queue share. */
export interface StartRate {
  /** Number of waiting runs. */
  readonly waiting: number
  /**
   * Resolves once a run has begun, or cannot begin now.
   * @param begin records that the run begins. Until `begin` has resolved, no other run of this
   * process has a unit, so at most one start is late. If `begin` rejects, so does the wait, and its
   * unit is lost.
   */
  pass(signal: AbortSignal, begin: () => Promise<void>): Promise<Pass>
  /** Refuses all waiting and later runs. */
  close(): void
}

/**
 * @param limiter `undefined`: no rate
 * @param maxHeldMs maximum wait (ms) of a run. @default no limit
 */
export function startRateOf(limiter: Limiter | undefined, maxHeldMs?: number): StartRate {
  /** Time of the next unit, if known. */
  let nextAt = 0
  let isClosed = false
  const turns = limiter && turnsOf(limiter)
  const bound = maxHeldMs === undefined ? {} : { maxWaitMs: maxHeldMs }
  const isTooLong = (waitMs: number): boolean => maxHeldMs !== undefined && waitMs > maxHeldMs
  const nextInMs = (): number => Math.max(0, nextAt - performance.now())
  const later = (): Pass => ({ outcome: 'later', delayMs: nextInMs() })

  function turnsOf(asked: Limiter): TurnQueue<Decision> {
    const queue = new TurnQueue<Decision>({
      ask: async () => {
        const decision = await asked.consume(everyWorker)
        if (decision.allowed) return { grant: decision }
        const waitMs = retryMs(decision)
        nextAt = performance.now() + waitMs
        // No run can begin in time.
        if (isTooLong(waitMs)) queue.close()
        return { retryMs: waitMs }
      },
      giveBack: (decision) => asked.refund(decision),
    })
    return queue
  }

  return {
    get waiting() {
      return turns?.waiting ?? 0
    },
    async pass(signal, begin) {
      if (isClosed || signal.aborted) return { outcome: 'refused' }
      if (!turns) {
        await begin()
        return { outcome: 'begun' }
      }
      if (isTooLong(nextInMs())) return later()
      const turn = await turns.wait({ signal, begin, ...bound })
      if ('grant' in turn) return { outcome: 'begun' }
      return isClosed || turn.left === 'aborted' ? { outcome: 'refused' } : later()
    },
    close() {
      isClosed = true
      turns?.close()
    },
  }
}

/**
 * Returns the delay (ms) before the next check. The `Retry-After` of an unavailable store is for
 * clients; a worker may check sooner.
 */
function retryMs({ source, retryAfterMs }: Decision): number {
  return source === 'closed' ? unavailableRetryMs : retryAfterMs
}
