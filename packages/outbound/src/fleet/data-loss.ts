import { randomUUID } from 'node:crypto'
import type { Check, Decision, Store } from '@sluice/core'
import { background, backgroundSleep } from '../background.ts'
import { FleetSign } from './flag.ts'
import type { Doubt } from './recovery-wait.ts'

/** Once a year the fleet takes a store for a new one that has not lost anything, and waits for nothing. */
const signMs = 365 * 86_400_000

const pollMs = 250

/** How much longer than the wait for the sign the mark lasts of who waits. */
const markMs = 3_600_000

/**
 * Tells whether the store still has what the fleet has told it. A sign is set there, and is gone when the store has lost its data; every
 * permit comes with what it says in the same step. Whoever misses the sign permits nothing for a while, tells the store what it knows, and
 * sets the sign again, unless a mark of its own says that the store has lost its data once more meanwhile.
 */
export class StoreMemory {
  readonly #sign: FleetSign
  /** Set for as long as this process waits to set the sign. */
  readonly #mark: FleetSign
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
    this.#mark = new FleetSign(`outbound.${name}.waits`, store, randomUUID())
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
    return isSet === true && !this.#isRestoring
  }

  /** Looks without a permit. */
  async look(): Promise<void> {
    if ((await this.#leftMs(this.#sign)) === 0) this.#miss()
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
    let isMarked = false
    while (!this.#isClosed) {
      if (!isMarked) {
        isMarked = await this.#tried(this.#mark.set(markMs + this.#finiteRestMs))
        // What is told, and how long is waited, counts from the mark on.
        if (isMarked) this.#doubt.lost()
      }
      if (isMarked) isTold ||= await this.#retell()
      await backgroundSleep(Math.min(pollMs, this.#doubt.restMs))
      const leftMs = await this.#leftMs(this.#sign)
      if (leftMs === undefined || !isTold || !isMarked) continue
      const markedMs = await this.#leftMs(this.#mark)
      if (markedMs === undefined) continue
      if (markedMs === 0) {
        // With what others had told it since. A sign that is there may be one of ours that came late.
        this.#doubt.lost()
        if (await this.#tried(this.#sign.clear())) {
          isTold = false
          isMarked = false
        }
      } else if (leftMs > 0) break
      else if (this.#doubt.restMs === 0) await this.#tried(this.#sign.set(signMs))
    }
    this.#isRestoring = false
    if (isMarked) await this.#tried(this.#mark.clear())
  }

  get #finiteRestMs(): number {
    const { restMs } = this.#doubt
    return Number.isFinite(restMs) ? restMs : 0
  }

  /** Whether it was done. Where not, the store is away again: what follows is a doubt of its own. */
  async #tried(work: Promise<void>): Promise<boolean> {
    try {
      await work
      return true
    } catch {
      this.#doubt.failed()
      return false
    }
  }

  async #leftMs(sign: FleetSign): Promise<number | undefined> {
    const leftMs = await sign.leftMs()
    if (leftMs === undefined) this.#doubt.failed()
    else this.#doubt.heard()
    return leftMs
  }
}
