import { createHash } from 'node:crypto'
import type { Job as BullmqJob } from 'bullmq'
import type { EnqueueTerms, Idempotency } from '../broker.ts'
import type { JobState, JobStatus, NewJob } from '../job.ts'

/** A job, and what is to be known of it when it ends. */
export interface StoredJob extends NewJob {
  /** How long its outcome is kept, and its idempotency key counts, from its end on. */
  readonly retentionMs: number
  readonly record?: IdempotencyRecord | undefined
}

/** Digests of an idempotency key, and of what it stands for. */
interface IdempotencyRecord {
  readonly key: string
  readonly fingerprint: string
}

const defaultRetentionMs = 3_600_000

export function storedJob(job: NewJob, { retentionMs, idempotency }: EnqueueTerms): StoredJob {
  const record = idempotency && recordOf(job.identity, idempotency)
  return { ...job, retentionMs, record }
}

/** A client chooses its key, and another identity may choose the same. */
function recordOf(identity: string, { key, fingerprint }: Idempotency): IdempotencyRecord {
  return { key: digest(JSON.stringify([identity, key])), fingerprint: digest(fingerprint) }
}

/** What BullMQ carries for a job of ours: JSON, from a queue that others could write to. */
export function readJob({ id = '', data }: Pick<BullmqJob, 'id' | 'data'>): StoredJob {
  const { identity, payload, enqueuedAt, expiresAt, retentionMs, record } = fieldsOf(data)
  const { key, fingerprint } = fieldsOf(record)
  const hasRecord = typeof key === 'string' && typeof fingerprint === 'string'
  return {
    id,
    identity: typeof identity === 'string' ? identity : '',
    payload,
    enqueuedAt: typeof enqueuedAt === 'number' ? enqueuedAt : 0,
    expiresAt: typeof expiresAt === 'number' ? expiresAt : undefined,
    retentionMs: typeof retentionMs === 'number' ? retentionMs : defaultRetentionMs,
    record: hasRecord ? { key, fingerprint } : undefined,
  }
}

export function writeJob({ id: _, ...data }: StoredJob): object {
  return data
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

/** No identity, and no key of a client's, stands in Redis as it is, nor makes a key longer than others. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
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
