/**
 * Something that a request occupies until its response is over, such as a lease. Only the first
 * call of the two counts.
 */
export interface Hold {
  /** The response was sent, with this status. */
  finish(status: number): void
  /** The connection went first. */
  abort(): void
}

/** Several things that a request holds, settled together; `undefined` where there are none. */
export function allHolds(...holds: readonly (Hold | undefined)[]): Hold | undefined {
  const held = holds.filter((hold) => hold !== undefined)
  if (held.length < 2) return held[0]
  return {
    finish(status) {
      for (const hold of held) hold.finish(status)
    },
    abort() {
      for (const hold of held) hold.abort()
    },
  }
}
