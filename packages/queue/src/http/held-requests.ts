import type { AdmissionRequest } from '@sluice/http'
import { isOpen, type JobStatus } from '../job.ts'
import type { Queue } from '../queue.ts'
import { orWithout } from './answers.ts'

interface HoldingTerms<Native> {
  readonly queue: Queue<Native>
  readonly maxWaitMs: number
  readonly maxHeld: number
}

/** Requests that are held until their jobs have ended, since their clients prefer to wait. */
export class HeldRequests<Native> {
  readonly #terms: HoldingTerms<Native>
  #waiting = 0

  constructor(terms: HoldingTerms<Native>) {
    this.#terms = terms
  }

  /**
   * Waits for the end of a job. If the job does not end in time, or the broker fails, the job stays
   * accepted.
   */
  async ended(
    { id, identity }: { readonly id: string; readonly identity: string },
    waitMs: number,
    asked: AdmissionRequest<Native>,
  ): Promise<JobStatus | undefined> {
    const { queue, maxWaitMs, maxHeld } = this.#terms
    if (waitMs === 0 || this.#waiting >= maxHeld) return undefined
    const left = new AbortController()
    const leave = (): void => left.abort()
    asked.settleAtEnd({ finish: leave, abort: leave })
    this.#waiting += 1
    try {
      const timing = { timeoutMs: Math.min(waitMs, maxWaitMs), signal: left.signal }
      const found = await orWithout(() => queue.settled(id, identity, timing), undefined)
      return found && !isOpen(found) ? found : undefined
    } finally {
      this.#waiting -= 1
    }
  }
}
