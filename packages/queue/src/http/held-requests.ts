import type { AdmissionRequest } from '@sluice/http'
import { isOpen, type JobStatus } from '../job.ts'
import { orWithout } from './job-responses.ts'
import type { AdmissionSetup } from './options.ts'

type HoldingTerms<Native> = Pick<AdmissionSetup<Native>, 'queue' | 'maxWait' | 'maxHeld'>

/**
 * Waits for the end of a job. If the job does not end in time, or the broker fails, the job stays
 * accepted.
 */
export type HoldRequest<Native> = (
  job: { readonly id: string; readonly identity: string },
  waitMs: number,
  asked: AdmissionRequest<Native>,
) => Promise<JobStatus | undefined>

/** Holds requests of clients that prefer to wait, until their jobs have ended. */
export function holdRequests<Native>(terms: HoldingTerms<Native>): HoldRequest<Native> {
  const { queue, maxWait: maxWaitMs, maxHeld } = terms
  let held = 0
  return async ({ id, identity }, waitMs, asked) => {
    if (waitMs === 0 || held >= maxHeld) return undefined
    const left = new AbortController()
    const leave = (): void => left.abort()
    asked.settleAtEnd({ finish: leave, abort: leave })
    held += 1
    try {
      const timing = { timeoutMs: Math.min(waitMs, maxWaitMs), signal: left.signal }
      const found = await orWithout(() => queue.settled(id, identity, timing), undefined)
      return found && !isOpen(found) ? found : undefined
    } finally {
      held -= 1
    }
  }
}
