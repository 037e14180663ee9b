import type { Store } from '@sluice/core'
import { FleetFlag } from './flag.ts'

/**
 * Interval (ms) at which a paused process checks that the store still has the pause, and retries
 * after a failure.
 */
const recheckMs = 500

/** Difference (ms) between two clocks that is tolerated. */
const toleratedMs = 50

/**
 * Pauses the fleet with a flag in the store. The flag outlives the process that received the third
 * party's answer.
 */
export class Pause {
  /** Set while the processes must pause. It denies permits. */
  readonly flag: FleetFlag
  /** End of the pause, by a clock that never steps. */
  #endsAt = 0
  #timer: NodeJS.Timeout | undefined
  /** The current report to the store. */
  #report: Promise<void> | undefined
  #isClosed = false

  constructor(name: string, store: Store) {
    this.flag = new FleetFlag({ name: `outbound.${name}.pause`, store })
  }

  /** Rest (ms) of the pause, as far as this process knows from the third party. */
  get leftMs(): number {
    return Math.max(0, this.#endsAt - performance.now())
  }

  /** Pauses the fleet for `forMs`, or until the end of a longer pause. */
  begin(forMs: number): void {
    this.#endsAt = Math.max(this.#endsAt, performance.now() + forMs)
    if (!this.#isClosed) this.#timer ??= setInterval(() => this.#tell(), recheckMs).unref()
    this.#tell()
  }

  /** Stops once the store has the pause. The pause continues without this process. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await this.#report
  }

  /** Reports the pause to the store while it lasts. */
  #tell(): void {
    if (this.leftMs > 0) {
      this.#report ??= this.#setFlag().finally(() => {
        this.#report = undefined
      })
    } else {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }

  /**
   * Sets the flag unless it already lasts long enough. Reads it again afterwards, since another
   * process may have set a shorter one at the same time. An unavailable store receives it later.
   */
  async #setFlag(): Promise<void> {
    for (let tries = 1; tries <= 3; tries += 1) {
      const knownMs = await this.flag.leftMs()
      if (knownMs === undefined || knownMs + toleratedMs >= this.leftMs) return
      if (!(await this.flag.set(this.leftMs))) return
    }
  }
}
