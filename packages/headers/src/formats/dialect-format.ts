import type { PolicyState } from '../values/policy-state.ts'

/**
 * A family of header fields that clients read.
 *
 * - `draft-11`: `RateLimit` and `RateLimit-Policy` in the syntax of
 *   draft-ietf-httpapi-ratelimit-headers-11, which has
 *   not changed since -08; `draft-8` to `draft-10` are other names for it.
 * - `draft-7`: the same two fields in the incompatible types of revision 07.
 * - `draft-6`: `RateLimit-Limit`, `-Remaining`, `-Reset` and `-Policy`, as in revisions 04 to 06.
 * - `legacy`: `X-RateLimit-Limit`, `-Remaining`, `-Reset`, with the reset in epoch seconds (GitHub,
 *   express-rate-limit).
 * - `legacy-delta`: the same names, with the reset in seconds from now (as `@fastify/rate-limit`
 *   sends).
 * - `legacy-github`: the fields of `legacy`, plus `X-RateLimit-Used` and `-Resource`.
 */
export type Dialect =
  | 'draft-11'
  | 'draft-10'
  | 'draft-9'
  | 'draft-8'
  | 'draft-7'
  | 'draft-6'
  | 'legacy'
  | 'legacy-delta'
  | 'legacy-github'

/** Name and value of a header field. */
export type HeaderLine = readonly [name: string, value: string]

/** Input of every dialect for the fields of one response. */
export interface FieldOptions {
  /** Milliseconds since 1970, by the clock with which clients compare `X-RateLimit-Reset`. */
  readonly nowMs: number
  /** True if the response refuses the request; Retry-After is sent only then. */
  readonly rejected: boolean
}

/** Options of `formatHeaders`. */
export interface FormatOptions extends FieldOptions {
  /** Dialects as returned by `checkDialects`; an empty list sends only Retry-After. */
  readonly dialects: readonly Dialect[]
  /** Milliseconds added to Retry-After only. @default 0 */
  readonly retryJitterMs?: number | undefined
}

/** Everything specific to one dialect. */
export interface DialectFormat {
  /** Its main name; it may have others. */
  readonly name: Dialect
  /**
   * Dialects of one family share field names with different meanings, so a response may use only
   * one of them.
   */
  readonly family: 'ietf' | 'legacy'
  /** The fields it may write, in the order of Access-Control-Expose-Headers. */
  readonly fieldNames: readonly string[]
  /** Appends the lines of this dialect. */
  add(lines: HeaderLine[], states: readonly PolicyState[], options: FieldOptions): void
  /**
   * Joins our list with the lines that another limiter or a proxy has set on the response.
   * @default only ours
   */
  join?(name: string, theirs: readonly string[], ours: string | undefined): string | undefined
}
