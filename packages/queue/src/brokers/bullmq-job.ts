import type { Job as BullmqJob } from 'bullmq'
import type { JobState, JobStatus, NewJob } from '../job.ts'

/** What BullMQ carries for a job of ours: JSON, from a queue that others could write to. */
export function readJob({ id = '', data }: Pick<BullmqJob, 'id' | 'data'>): NewJob {
  const { identity, payload, enqueuedAt, expiresAt } = fieldsOf(data)
  return {
    id,
    identity: typeof identity === 'string' ? identity : '',
    payload,
    enqueuedAt: typeof enqueuedAt === 'number' ? enqueuedAt : 0,
    expiresAt: typeof expiresAt === 'number' ? expiresAt : undefined,
  }
}

export function writeJob({ identity, payload, enqueuedAt, expiresAt }: NewJob): object {
  return { identity, payload, enqueuedAt, expiresAt }
}

/** What a run leaves behind in BullMQ: not every job that is completed there was done. */
export interface Ending {
  readonly outcome: 'done' | 'cancelled' | 'expired'
  readonly result?: unknown
}

export function statusOf(job: BullmqJob, bullmqState: string): JobStatus {
  const { id, identity, enqueuedAt } = readJob(job)
  const { outcome, result } = fieldsOf(job.returnvalue)
  const state = stateOf(bullmqState, outcome)
  const wasRun = state !== 'cancelled' && state !== 'expired'
  return {
    id,
    identity,
    state,
    enqueuedAt,
    attempts: wasRun ? job.attemptsMade : Math.max(0, job.attemptsMade - 1),
    result: state === 'done' ? result : undefined,
    error: job.failedReason || undefined,
  }
}

function stateOf(bullmqState: string, outcome: unknown): JobState {
  if (bullmqState === 'active') return 'running'
  if (bullmqState === 'failed') return 'failed'
  if (bullmqState !== 'completed') return 'pending'
  return outcome === 'cancelled' || outcome === 'expired' ? outcome : 'done'
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
