/** How long a failed job waits before it is tried again. */
export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
}

/**
 * Exponential backoff with full jitter: anything from 0 to base · 2^(attempt − 1), and to the maximum at most. Jobs that failed together
 * come back spread out.
 */
export function backoffMs({ baseMs, maxMs }: Backoff, attempt: number): number {
  return Math.floor(Math.random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1)))
}
