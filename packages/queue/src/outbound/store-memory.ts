import type { Check, Decision, Store } from '@sluice/core'
import { background, backgroundSleep } from './background.ts'
import type { Doubt } from './doubt.ts'
import { FleetSign } from './fleet-limiter.ts'

/** Once a year the fleet takes a store for a new one that has not lost anything, and waits for nothing. */
const signMs = 365 * 86_400_000

const pollMs = 250

/**
 * Tells whether the store still has what the fleet has told it. A sign is set there, and is gone when the store has lost its data; every
 * permit comes with what it says in the same step. Whoever misses the sign permits nothing for a window, tells the store what it knows, and
 * sets the sign again.
 */
export class StoreMemory {
  readonly #sign: FleetSign
  readonly #doubt: Doubt
  readonly #retell: () => Promise<boolean>
  #isRestoring = false
  #isClosed = false

  /** @param retell tells the store of this process' own calls, and whether that was done */
  constructor(
    { name, store }: { readonly name: string; readonly store: Store },
    doubt: Doubt,
    retell: () => Promise<boolean>,
  ) {
    this.#sign = new FleetSign(`outbound.${name}.known`, store)
    this.#doubt = doubt
    this.#retell = retell
  }

  /** What a permit asks of it. */
  get checks(): readonly Check[] {
    return this.#sign.checks(0)
  }

  /** Whether nothing was lost, as a decision of the store with these checks says. */
  isWholeBy(decision: Decision): boolean {
    const isSet = this.#sign.isSetBy(decision)
    if (isSet === false) this.#miss()
    return isSet === true
  }

  /** Looks without a permit. */
  async look(): Promise<void> {
    if ((await this.#leftMs()) === 0) this.#miss()
  }

  close(): void {
    this.#isClosed = true
  }

  #miss(): void {
    if (this.#isRestoring) return
    this.#isRestoring = true
    this.#doubt.lost()
    background(this.#restore())
  }

  async #restore(): Promise<void> {
    let isTold = false
    while (!this.#isClosed) {
      isTold ||= await this.#retell()
      await backgroundSleep(Math.min(pollMs, this.#doubt.restMs))
      const leftMs = await this.#leftMs()
      if (!isTold || leftMs === undefined) continue
      if (leftMs > 0 || (this.#doubt.restMs === 0 && (await this.#set()))) break
    }
    this.#isRestoring = false
  }

  async #set(): Promise<boolean> {
    try {
      await this.#sign.set(signMs)
      return true
    } catch {
      // Away again: what follows is a doubt of its own.
      this.#doubt.failed()
      return false
    }
  }

  async #leftMs(): Promise<number | undefined> {
    const leftMs = await this.#sign.leftMs()
    if (leftMs === undefined) this.#doubt.failed()
    else this.#doubt.heard()
    return leftMs
  }
}
