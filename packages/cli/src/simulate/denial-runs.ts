const maxIdentities = 1_000_000

/**
 * The refusals of many identities: the first of all, and the longest time in which every request of
 * one identity was refused.
 */
export class DenialRuns {
  firstMs: number | undefined
  longestMs = 0
  readonly #beganMs = new Map<string, number>()

  get identities(): number {
    return this.#beganMs.size
  }

  deny(identity: string, timeMs: number): void {
    this.firstMs ??= timeMs
    const known = this.#beganMs.get(identity)
    if (known === undefined && this.#beganMs.size >= maxIdentities) return
    if (known === undefined || known < 0) this.#beganMs.set(identity, timeMs)
    else if (timeMs - known > this.longestMs) this.longestMs = timeMs - known
  }

  allow(identity: string): void {
    if (this.#beganMs.size === 0) return
    const known = this.#beganMs.get(identity)
    if (known !== undefined && known >= 0) this.#beganMs.set(identity, -1)
  }
}
