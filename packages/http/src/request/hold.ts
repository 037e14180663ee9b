/**
 * Something that a request occupies until its response ends, such as a lease. Only the first of the
 * two calls counts. It may return a promise for the store's work, which never rejects. A runtime
 * that stops after a response must wait for it.
 */
export interface Hold {
  /** The response was sent with this status. */
  finish(status: number): unknown
  /** The connection closed before that. */
  abort(): unknown
}

/** Combines several holds, which are settled together; `undefined` if there are none. */
export function allHolds(...holds: readonly (Hold | undefined)[]): Hold | undefined {
  const held = holds.filter((hold) => hold !== undefined)
  if (held.length < 2) return held[0]
  return {
    finish: (status) => Promise.all(held.map((hold) => hold.finish(status))),
    abort: () => Promise.all(held.map((hold) => hold.abort())),
  }
}
