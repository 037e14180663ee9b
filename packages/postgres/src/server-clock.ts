/**
 * The clock of the server as its replies tell it. It is never ahead of the server, unless one of
 * the clocks was set: a reply arrives after its time was read.
 */
export class ServerClock {
  /** The most that the server was ahead of the monotonic clock of this process, in ms. */
  #aheadMs = Date.now() - performance.now()

  now(): number {
    return Math.floor(performance.now() + this.#aheadMs)
  }

  /** Learns from a reply. @param isRefused true when the server refused a time of this clock */
  learn(serverMs: number, isRefused: boolean): void {
    const aheadMs = serverMs - performance.now()
    this.#aheadMs = isRefused ? aheadMs : Math.max(this.#aheadMs, aheadMs)
  }
}
