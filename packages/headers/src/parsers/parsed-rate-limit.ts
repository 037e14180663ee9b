/**
 * One policy as described in a response. A field is `undefined` if the response does not have it.
 */
export interface ParsedPolicy {
  /** Dialects before draft-8 have no names; GitHub and model APIs name the quota. */
  readonly name: string | undefined
  /** Units per window. */
  readonly limit?: number | undefined
  /** Units left. */
  readonly remaining?: number | undefined
  /** Milliseconds from now until the effective window ends, never negative. */
  readonly resetMs?: number | undefined
  /** Length of the window in milliseconds. */
  readonly windowMs?: number | undefined
  /** The unit counted; the draft's default is `requests`. */
  readonly unit?: string | undefined
  /** Partition key. */
  readonly pk?: Uint8Array | undefined
  /** Units that this request took. */
  readonly cost?: number | undefined
  /** Dimensions such as `user_id`. True: a quota per value. A string: only for this value. */
  readonly partition?: Readonly<Record<string, unknown>> | undefined
}

/** The rate limits of a response. */
export interface ParsedRateLimit {
  readonly policies: readonly ParsedPolicy[]
  /** Milliseconds to wait from now, never negative; it takes precedence over every reset. */
  readonly retryAfterMs: number | undefined
}
