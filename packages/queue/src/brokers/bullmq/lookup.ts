import type { Job, Queue } from 'bullmq'
import type { JobStatus } from '../../job.ts'
import { isJobId, readJob, statusOf } from '../redis/stored-job.ts'
import type { QueueState } from './queue-state.ts'

export interface Found {
  readonly job: Job
  readonly status: JobStatus
}

export async function findJob(queue: Queue, id: string): Promise<Found | undefined> {
  if (!isJobId(id)) return undefined
  // The state is read first. In the other order, a job that ends between the two reads would be
  // done, and have no result.
  const state = await queue.getJobState(id)
  const job = state === 'unknown' ? undefined : await queue.getJob(id)
  return job && { job, status: statusOf(job, state) }
}

/** True if a job still waits, has never begun, and is past its `expiresAt`. */
export async function isOverdue({ job, status }: Found, state: QueueState): Promise<boolean> {
  const { id, expiresAt } = readJob(job)
  if (status.state !== 'pending' || expiresAt === undefined || expiresAt > Date.now()) return false
  return !(await state.hasBegun({ id }))
}

/**
 * True if a job ended so long ago that its outcome is not kept. BullMQ removes it only when another
 * job ends.
 */
export function isForgotten({ job, status }: Found): boolean {
  if (status.state === 'failed' || job.finishedOn === undefined) return false
  return job.finishedOn + readJob(job).retentionMs <= Date.now()
}
