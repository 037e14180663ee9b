/**
 * A job of a queue. Every broker stores it as JSON.
 * @typeParam Payload the declared type of the payload; nothing checks it
 */
export interface NewJob<Payload = unknown> {
  /** Unguessable, and the same in every run of the job. Handlers use it to be idempotent. */
  readonly id: string
  /**
   * Owner of the job; nobody else may see it. A queue stores a digest of the identity, because the
   * identity may be a secret.
   */
  readonly identity: string
  /** Payload for the handler: anything that fits into JSON. */
  readonly payload: Payload
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number
  /** Time at which the job expires, in milliseconds since 1970. */
  readonly expiresAt?: number | undefined
}

/** A job that a worker runs. */
export interface Job<Payload = unknown> extends NewJob<Payload> {
  /** 1 for the first run. Runs ended by a crash are not counted. */
  readonly attempt: number
}

/**
 * - `pending`: waits for a worker, or for its next attempt
 * - `done`, `failed`, `cancelled`: how the job ended; a failed job is a dead letter
 * - `expired`: it waited too long and was never run
 */
export type JobState = 'pending' | 'running' | 'done' | 'failed' | 'cancelled' | 'expired'

/** The state of a job in the broker. */
export interface JobStatus {
  readonly id: string
  readonly identity: string
  readonly state: JobState
  readonly enqueuedAt: number
  /** Runs that have ended. */
  readonly attempts: number
  /** Return value of the handler, once the job is done. */
  readonly result?: unknown
  /** Error of the last run. */
  readonly error?: string | undefined
}

/** True if a job has not ended. */
export function isOpen({ state }: { readonly state: JobState }): boolean {
  return state === 'pending' || state === 'running'
}
