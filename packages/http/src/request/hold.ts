/**
 * Something that a request occupies until its response is over, such as a lease. Only the first
 * call of the two counts. It may return a promise of the store's work, which never rejects. A
 * runtime that stops at the end of a response has to wait for it.
 */
export interface Hold {
  /** The response was sent, with this status. */
  finish(status: number): unknown
  /** The connection went first. */
  abort(): unknown
}

/** Several things that a request holds, settled together; `undefined` where there are none. */
export function allHolds(...holds: readonly (Hold | undefined)[]): Hold | undefined {
  const held = holds.filter((hold) => hold !== undefined)
  if (held.length < 2) return held[0]
  return {
    finish: (status) => Promise.all(held.map((hold) => hold.finish(status))),
    abort: () => Promise.all(held.map((hold) => hold.abort())),
  }
}
