import type { Hold } from './hold.ts'

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
