import type { Check, Decision, Store } from '@sluice/core'
import { background, backgroundSleep } from './background.ts'
import { FleetFlag } from './flag.ts'

/**
 * Interval (ms) at which a paused process checks that the store still has the pause, and retries
 * after a failure.
 */
const recheckMs = 500

/** Difference (ms) between two clocks that is tolerated. */
const toleratedMs = 50

/**
 * Pauses the fleet by a flag in the store. The flag outlives the process that got the third party's
 * answer.
 */
export class Pause {
  readonly #flag: FleetFlag
  /** End of the pause, by a clock that never steps. */
  #endsAt = 0
  /** The report to the store that is under way. */
  #report: Promise<void> | undefined
  #isRepeating = false
  #isClosed = false

  constructor(name: string, store: Store) {
    this.#flag = new FleetFlag(`outbound.${name}.pause`, store)
  }

  /** Rest (ms) of the pause, as far as the third party told this process. */
  get leftMs(): number {
    return Math.max(0, this.#endsAt - performance.now())
  }

  /** Check that a permit adds: it is denied while any process was told to pause. */
  get checks(): readonly Check[] {
    return this.#flag.checks(1)
  }

  /**
   * Time (ms) before it makes sense to ask again after a denial with these checks; `undefined` if
   * the fleet is not paused.
   */
  retryMsBy(decision: Decision): number | undefined {
    const leftMs = this.#flag.leftMsBy(decision)
    return leftMs > 0 ? Math.min(leftMs, 1_000) : undefined
  }

  /** Pauses the fleet for `forMs`, or until the end of a longer pause. */
  begin(forMs: number): void {
    this.#endsAt = Math.max(this.#endsAt, performance.now() + forMs)
    background(this.#reported())
    if (!this.#isRepeating) background(this.#repeat())
  }

  /** Stops, as soon as the store has the pause. The pause goes on without this process. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#report
  }

  async #repeat(): Promise<void> {
    this.#isRepeating = true
    while (this.leftMs > 0 && !this.#isClosed) {
      await backgroundSleep(Math.min(recheckMs, this.leftMs))
      await this.#reported()
    }
    this.#isRepeating = false
  }

  #reported(): Promise<void> {
    this.#report ??= this.#setFlag().finally(() => {
      this.#report = undefined
    })
    return this.#report
  }

  /**
   * Sets the flag unless it lasts long enough already. Reads it again afterwards, since another
   * process may have set a shorter one at the same time.
   */
  async #setFlag(): Promise<void> {
    for (let tries = 1; tries <= 3; tries += 1) {
      const knownMs = await this.#flag.leftMs()
      if (knownMs === undefined || knownMs + toleratedMs >= this.leftMs) return
      // A store that is away gets the pause when it is back.
      if (!(await this.#flag.set(this.leftMs))) return
    }
  }
}
