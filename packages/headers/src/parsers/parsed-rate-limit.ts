/**
 * One policy as a response describes it. A field is `undefined` when the response does not tell.
 */
export interface ParsedPolicy {
  /** Dialects before draft-8 have no names; GitHub and model APIs name what is limited. */
  readonly name: string | undefined
  /** Units per window. */
  readonly limit?: number | undefined
  /** Units left. */
  readonly remaining?: number | undefined
  /** Milliseconds from now until the effective window ends, never negative. */
  readonly resetMs?: number | undefined
  /** Length of the window in milliseconds. */
  readonly windowMs?: number | undefined
  /** The unit that is counted; the draft's default is `requests`. */
  readonly unit?: string | undefined
  /** Partition key. */
  readonly pk?: Uint8Array | undefined
  /** Units that this request took. */
  readonly cost?: number | undefined
  /** Dimensions such as `user_id`. True: a quota for each value. A text: for this value alone. */
  readonly partition?: Readonly<Record<string, unknown>> | undefined
}

/** The rate limits of a response. */
export interface ParsedRateLimit {
  readonly policies: readonly ParsedPolicy[]
  /** Milliseconds to wait from now, never negative; it takes precedence over every reset. */
  readonly retryAfterMs: number | undefined
}
