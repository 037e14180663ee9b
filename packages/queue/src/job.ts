/**
 * What is queued. All of it is written as JSON, whatever the broker.
 * @typeParam Payload what the payload is said to be; nothing checks it
 */
export interface NewJob<Payload = unknown> {
  /** Unguessable, and equal in every run of the job: what handlers make themselves idempotent by. */
  readonly id: string
  /** Who enqueued it, and alone may see it: of a queue, a digest of the identity, which may be a secret. */
  readonly identity: string
  /** What the handler is given: anything that JSON can carry. */
  readonly payload: Payload
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number
  /** When the job is not worth running any more, in milliseconds since 1970. */
  readonly expiresAt?: number | undefined
}

/** A job that a worker runs. */
export interface Job<Payload = unknown> extends NewJob<Payload> {
  /** 1 for the first run. A run that a crash ended is not counted. */
  readonly attempt: number
}

/**
 * - `pending`: waits for a worker, or for its next attempt
 * - `done`, `failed`, `cancelled`: what they say; a failed job is a dead letter
 * - `expired`: it waited longer than it was worth, and was never run
 */
export type JobState = 'pending' | 'running' | 'done' | 'failed' | 'cancelled' | 'expired'

/** What a broker knows of a job. */
export interface JobStatus {
  readonly id: string
  readonly identity: string
  readonly state: JobState
  readonly enqueuedAt: number
  /** Runs that have ended. */
  readonly attempts: number
  /** What the handler returned, once it is done. */
  readonly result?: unknown
  /** Why the last run failed. */
  readonly error?: string | undefined
}

/** Whether a job has not ended. */
export function isOpen({ state }: { readonly state: JobState }): boolean {
  return state === 'pending' || state === 'running'
}
