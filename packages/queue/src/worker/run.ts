import {
  type ErrorCode,
  errorText,
  isSluiceError,
  type MaybePromise,
  withDeadline,
} from '@sluice/core'
import type { Settlement } from '../broker.ts'
import type { Emit } from '../event.ts'
import type { Job } from '../job.ts'
import { jsonText } from '../json-text.ts'

/** Argument of the handler, besides the job. */
export interface RunContext {
  /**
   * Aborted when the run times out, when the job is cancelled, or when a closing worker's grace
   * period ends. Also aborted if the job runs elsewhere because this worker was silent for too
   * long.
   */
  readonly signal: AbortSignal
}

/**
 * Runs a job. The returned value is the result, stored as JSON. After an error the job runs again.
 * A job may run more than once: `job.id` is the same in every run.
 */
export type JobHandler<Payload = unknown, Result = unknown> = (
  job: Job<Payload>,
  context: RunContext,
) => MaybePromise<Result>

/** Thrown by a handler for a job that would fail again: the job becomes a dead letter at once. */
export class PermanentError extends Error {
  override readonly name: string = 'PermanentError'
  readonly code: ErrorCode = 'SLUICE_JOB_PERMANENT'
}

export interface RunSetup {
  /** A method, so that users can choose the payload type. */
  handler(job: Job, context: RunContext): unknown
  /** Maximum runs per job. */
  readonly attempts: number
  readonly backoff: Backoff
  readonly timeoutMs: number
  readonly maxResultBytes: number
  readonly emit: Emit
}

export interface RunSignals {
  /** Aborted when the job is cancelled or runs elsewhere. */
  readonly cancelled: AbortSignal
  /** Aborted when the worker cannot wait any longer. */
  readonly shutDown: AbortSignal
}

/** Time (ms) that a handler has to stop when the worker is closing. */
export const stopGraceMs = 1_000

/** Calls the handler once, and returns the settlement of the job. Never rejects. */
export async function runOnce(
  job: Job,
  setup: RunSetup,
  { cancelled, shutDown }: RunSignals,
): Promise<Settlement> {
  const { id, attempt } = job
  const { handler, timeoutMs, emit } = setup
  const startedAt = performance.now()
  const runMs = (): number => performance.now() - startedAt
  emit({ type: 'started', id, attempt, waitMs: Math.max(0, Date.now() - job.enqueuedAt) })
  const overdue = new AbortController()
  const signal = AbortSignal.any([cancelled, shutDown, overdue.signal])
  const late = (): Error => {
    const error = new DOMException(`the run took longer than ${timeoutMs} ms`, 'TimeoutError')
    overdue.abort(error)
    return error
  }
  try {
    // Does not wait for a handler that ignores its signal.
    const invoke = async (): Promise<unknown> => handler(job, { signal })
    const work = Promise.race([invoke(), stopped(shutDown)])
    const result = await withDeadline(work, timeoutMs, late)
    const text = resultText(result, setup.maxResultBytes)
    const done = { type: 'done', id, attempt, runMs: runMs() } as const
    return { outcome: 'done', result: JSON.parse(text), onSettled: () => emit(done) }
  } catch (error) {
    if (isSluiceError(cancelled.reason, 'SLUICE_LEASE_LOST')) return { outcome: 'returned' }
    if (cancelled.aborted) {
      return { outcome: 'cancelled', onSettled: () => emit({ type: 'cancelled', id }) }
    }
    if (shutDown.aborted) {
      return { outcome: 'returned', onSettled: () => emit({ type: 'returned', id }) }
    }
    return failed(job, setup, { error, runMs: runMs() })
  }
}

function failed(
  { id, attempt }: Job,
  { attempts, backoff, emit }: RunSetup,
  { error, runMs }: { readonly error: unknown; readonly runMs: number },
): Settlement {
  const ended = { id, attempt, runMs, error }
  const reason = errorText(error)
  if (isPermanent(error) || attempt >= attempts) {
    return { outcome: 'dead', error: reason, onSettled: () => emit({ type: 'dead', ...ended }) }
  }
  const delayMs = backoffMs(backoff, attempt)
  const onSettled = (): void => emit({ type: 'retried', ...ended, delayMs })
  return { outcome: 'retry', delayMs, error: reason, onSettled }
}

function isPermanent(error: unknown): boolean {
  try {
    return isSluiceError(error, 'SLUICE_JOB_PERMANENT')
  } catch {
    // A Proxy may throw in `instanceof`.
    return false
  }
}

/** Rejects if a handler does not stop within `stopGraceMs` after the shutdown. */
function stopped(shutDown: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const wait = (): void => {
      setTimeout(() => reject(shutDown.reason), stopGraceMs).unref()
    }
    if (shutDown.aborted) wait()
    else shutDown.addEventListener('abort', wait, { once: true })
  })
}

/**
 * @throws PermanentError for a value that does not fit into JSON or is too long: another run would
 * hardly shorten it
 */
function resultText(result: unknown, maxBytes: number): string {
  let text: string
  try {
    text = jsonText(result)
  } catch (cause) {
    throw new PermanentError(`the result cannot be serialised as JSON: ${errorText(cause)}`, {
      cause,
    })
  }
  if (Buffer.byteLength(text) <= maxBytes) return text
  throw new PermanentError(
    `the result is longer than maxResultBytes (${maxBytes}); store it elsewhere and return its location`,
  )
}

/** Delays before a failed job runs again. */
export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
}

/**
 * Returns an exponential backoff (ms) with full jitter: from 0 to base · 2^(attempt − 1), at most
 * the maximum. So jobs that failed together do not run together again.
 */
function backoffMs({ baseMs, maxMs }: Backoff, attempt: number): number {
  return Math.floor(Math.random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1)))
}
