/** Identities that are told apart. */
const maxIdentities = 1_000_000

/**
 * The refusals of many identities: the first of all, and the longest time in which every request of
 * one identity was refused.
 */
export class DenialRuns {
  firstMs: number | undefined
  longestMs = 0
  /** Begin of the refusals of an identity that no allowed request has ended yet, or -1. */
  readonly #beganMs = new Map<string, number>()

  /** Identities that were refused. */
  get identities(): number {
    return this.#beganMs.size
  }

  /** Notes a refusal. */
  deny(identity: string, timeMs: number): void {
    this.firstMs ??= timeMs
    const known = this.#beganMs.get(identity)
    if (known === undefined && this.#beganMs.size >= maxIdentities) return
    if (known === undefined || known < 0) this.#beganMs.set(identity, timeMs)
    else if (timeMs - known > this.longestMs) this.longestMs = timeMs - known
  }

  /** Notes that a request of an identity passed. */
  allow(identity: string): void {
    if (this.#beganMs.size === 0) return
    const known = this.#beganMs.get(identity)
    if (known !== undefined && known >= 0) this.#beganMs.set(identity, -1)
  }
}
