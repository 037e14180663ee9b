import type { Job as BullmqJob } from 'bullmq'
import type { EnqueueTerms } from '../../broker.ts'
import { digest } from '../../digest.ts'
import type { JobState, JobStatus, NewJob } from '../../job.ts'

/** A job, with the data that its end needs. */
export interface StoredJob extends NewJob {
  /** Time for which the outcome and the idempotency key are kept after the end of the job. */
  readonly retentionMs: number
  /** Digests of the idempotency key and of its fingerprint. */
  readonly record?: { readonly key: string; readonly fingerprint: string } | undefined
}

const defaultRetentionMs = 3_600_000

export function storedJob(job: NewJob, { retentionMs, idempotency }: EnqueueTerms): StoredJob {
  if (!idempotency) return { ...job, retentionMs }
  const key = recordKey(job.identity, idempotency.key)
  return { ...job, retentionMs, record: { key, fingerprint: shortDigest(idempotency.fingerprint) } }
}

/** Combines the identity with the idempotency key: two identities may choose the same key. */
export function recordKey(identity: string, idempotencyKey: string): string {
  return shortDigest(JSON.stringify([identity, idempotencyKey]))
}

/** The data of a job in BullMQ. It is checked, because others could write to the queue. */
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

/**
 * The return value of a run in BullMQ: a job that is completed there may have been cancelled or
 * expired.
 */
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

/**
 * Digests an identity or idempotency key, so that Redis never holds it, and all keys have one
 * length.
 */
export function shortDigest(text: string): string {
  return digest(text).slice(0, 22)
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
