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

/** The fields of a job in Redis, which have the names and forms that BullMQ gave them. */
export interface StoredFields {
  readonly id?: string | undefined
  readonly data: unknown
  readonly returnvalue: unknown
  readonly failedReason?: string | undefined
  readonly attemptsMade: number
}

/** Reads the data of a job. It is checked, because others could write to the queue. */
export function readJob({ id = '', data }: Pick<StoredFields, 'id' | 'data'>): StoredJob {
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

/** The return value of a job that ended without an error: it may have been cancelled or expired. */
export interface Ending {
  readonly outcome: 'done' | 'cancelled' | 'expired'
  readonly result?: unknown
}

/** @param place `active`, `failed`, `completed`, or another word for a job that waits */
export function statusOf(job: StoredFields, place: string): JobStatus {
  const { id, identity, enqueuedAt } = readJob(job)
  const { outcome, result } = fieldsOf(job.returnvalue)
  const state = stateOf(place, outcome)
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

/** The form of job ids. Any other text could be the name of another key of the queue. */
const jobId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function isJobId(id: string): boolean {
  return jobId.test(id)
}

/** The member of a queue's sets that stands for a job, and the digest of the job's identity. */
export function placeOf({ id, identity }: StoredJob): [place: string, identity: string] {
  const owner = shortDigest(identity)
  return [`${owner}:${id}`, owner]
}

/** Time (ms) by which a record outlives its retention. The end of the job shortens it. */
const recordMarginMs = 30 * 86_400_000

/** Returns how long (ms) the record of an idempotency key is kept while its job is open. */
export function recordMs({ enqueuedAt, expiresAt = enqueuedAt, retentionMs }: StoredJob): number {
  return Math.max(0, expiresAt - enqueuedAt) + retentionMs + recordMarginMs
}

/**
 * Digests an identity or idempotency key, so that Redis never holds it, and all keys have one
 * length.
 */
export function shortDigest(text: string): string {
  return digest(text).slice(0, 22)
}

function stateOf(place: string, outcome: unknown): JobState {
  if (place === 'active') return 'running'
  if (place === 'failed') return 'failed'
  if (place !== 'completed') return 'pending'
  return outcome === 'cancelled' || outcome === 'expired' ? outcome : 'done'
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
