import type { Dialect } from '../values/dialect.ts'
import type { PolicyState } from '../values/policy-state.ts'

/** Name and value of a header field. */
export type HeaderLine = readonly [name: string, value: string]

/** Input of every dialect for the fields of one response. */
export interface FieldOptions {
  /** Milliseconds since 1970, by the clock that clients compare `X-RateLimit-Reset` with. */
  readonly nowMs: number
  /** True if the response refuses the request; Retry-After is sent only then. */
  readonly rejected: boolean
  /**
   * `X-RateLimit-Used` and `X-RateLimit-Resource` beside the `legacy` fields, as GitHub sends them.
   * @default false
   */
  readonly githubExtras?: boolean | undefined
}

/** Options of `formatHeaders`. */
export interface FormatOptions extends FieldOptions {
  /** Dialects as `checkDialects` returns them; an empty list sends Retry-After alone. */
  readonly dialects: readonly Dialect[]
  /** Milliseconds added to Retry-After, and to nothing else. @default 0 */
  readonly retryJitterMs?: number | undefined
}

/** Writer of one dialect. */
export interface DialectFormat {
  /** The fields it may write, in the order of Access-Control-Expose-Headers. */
  readonly fieldNames: readonly string[]
  /** Appends the lines of this dialect. */
  add(lines: HeaderLine[], states: readonly PolicyState[], options: FieldOptions): void
}
