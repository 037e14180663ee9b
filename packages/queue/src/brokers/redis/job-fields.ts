import type { JobState } from '../../job.ts'
import type { FoundJob } from '../job-table.ts'
import { type StoredJob, shortDigest } from '../stored-job.ts'

const defaultRetentionMs = 3_600_000

/** Parses the data of a job, and checks it because others could write to the queue. */
export function readJob(id: string, data: unknown): StoredJob {
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

/** Decodes a row of `lua/read.lua`. The fields have BullMQ's names and formats. */
export function foundJob(row: readonly string[]): FoundJob {
  const [id = '', data = '', returnvalue = '', failedReason, ...rest] = row
  const [attempts = 0, endedAt = 0, began, isRunning] = rest.map(Number)
  const job = readJob(id, parsed(data))
  const { outcome, result } = fieldsOf(parsed(returnvalue))
  const open = isRunning === 1 ? 'running' : 'pending'
  const ended = returnvalue === '' ? 'failed' : endedAs(outcome)
  const state = endedAt === 0 ? open : ended
  const wasRun = state !== 'cancelled' && state !== 'expired'
  const { identity, enqueuedAt } = job
  return {
    job,
    status: {
      ...{ id, identity, state, enqueuedAt },
      attempts: wasRun ? attempts : Math.max(0, attempts - 1),
      result: state === 'done' ? result : undefined,
      error: failedReason || undefined,
    },
    hasBegun: began === 1,
    endedAt: endedAt || undefined,
  }
}

function endedAs(outcome: unknown): JobState {
  return outcome === 'cancelled' || outcome === 'expired' ? outcome : 'done'
}

/** The format of job ids. Any other string could name another key of the queue. */
const jobId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function isJobId(id: string): boolean {
  return jobId.test(id)
}

/** Time (ms) by which an idempotency record outlives the retention while its job is open. */
const recordMarginMs = 30 * 86_400_000

/** Describes a job for scripts: `lua/prelude.lua` explains the fields. */
export function scriptJob(job: StoredJob): object {
  const { id, identity, enqueuedAt, expiresAt = enqueuedAt, retentionMs, record } = job
  const openMs = Math.max(0, expiresAt - enqueuedAt) + retentionMs + recordMarginMs
  const times = { enqueuedAt, expiresAt: job.expiresAt, retentionMs, openMs }
  const { key, fingerprint } = record ?? {}
  return { id, identity: shortDigest(identity), ...times, record: key, fingerprint }
}

/** A string changed by someone else counts as missing. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
