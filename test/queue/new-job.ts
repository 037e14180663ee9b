import { randomUUID } from 'node:crypto'
import type { EnqueueTerms, NewJob } from '@sluice/queue'

/** Terms that nothing in a test comes near. */
export const roomy: EnqueueTerms = {
  maxDepth: 1_000,
  maxDepthPerIdentity: 1_000,
  retentionMs: 60_000,
}

export function newJob(fields: Partial<NewJob> = {}): NewJob {
  return {
    id: randomUUID(),
    identity: 'user:1',
    payload: { page: 1 },
    enqueuedAt: Date.now(),
    ...fields,
  }
}
