import type { EnqueueTerms } from '../broker.ts'
import { digest } from '../digest.ts'
import type { NewJob } from '../job.ts'

/** A job, with the data needed to end it. */
export interface StoredJob extends NewJob {
  /** Time (ms) for which outcome and idempotency key are kept after the job ends. */
  readonly retentionMs: number
  /** Digests of the idempotency key and of its fingerprint. */
  readonly record?: { readonly key: string; readonly fingerprint: string } | undefined
}

export function storedJob(job: NewJob, { retentionMs, idempotency }: EnqueueTerms): StoredJob {
  if (!idempotency) return { ...job, retentionMs }
  const key = recordKey(job.identity, idempotency.key)
  return { ...job, retentionMs, record: { key, fingerprint: shortDigest(idempotency.fingerprint) } }
}

/** Combines the identity with the idempotency key: two identities may choose the same key. */
export function recordKey(identity: string, idempotencyKey: string): string {
  return shortDigest(JSON.stringify([identity, idempotencyKey]))
}

/**
 * Hashes an identity or idempotency key, so that Redis never holds it and all keys have the same
 * length.
 */
export function shortDigest(text: string): string {
  return digest(text).slice(0, 22)
}
