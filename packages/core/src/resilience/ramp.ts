/** How long it takes until all traffic is back, give or take the jitter, so that a fleet does not come back at once. */
const rampMs = 2_000
const jitter = 0.25

/** The gradual return of traffic: a growing share of the keys, each of which moves once. */
export class Ramp {
  readonly #startMs: number
  readonly #durationMs: number

  /** @param random from 0 to below 1 */
  constructor(nowMs: number, random: () => number) {
    this.#startMs = nowMs
    this.#durationMs = rampMs * (1 + jitter * (2 * random() - 1))
  }

  isOver(nowMs: number): boolean {
    return nowMs - this.#startMs >= this.#durationMs
  }

  isBack(key: string, nowMs: number): boolean {
    return placeOf(key) < (nowMs - this.#startMs) / this.#durationMs
  }
}

/** Where a key stands in the row of all keys, from 0 to below 1: FNV-1a of 32 bits, mixed as MurmurHash3 does at its end. */
function placeOf(key: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
