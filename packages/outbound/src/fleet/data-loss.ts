import { randomUUID } from 'node:crypto'
import type { Check, Decision, Store } from '@sluice/core'
import { background, backgroundSleep } from './background.ts'
import { FleetFlag } from './flag.ts'
import type { RecoveryWait } from './recovery-wait.ts'

/**
 * Life (ms) of the flag. Once a year it expires, and the fleet waits although the store has lost
 * nothing.
 */
const flagMs = 365 * 86_400_000

const pollMs = 250

/** Time (ms) by which the mark of a waiting process outlives its wait for the flag. */
const markMs = 3_600_000

/**
 * Detects that the store has lost the fleet's data. The fleet keeps a flag in the store, and each
 * permit reads it in the same atomic step. A process that misses the flag permits nothing for a
 * while, and reports its own calls to the store. Then it sets the flag again, unless its own mark
 * is gone too: then the store has lost its data once more.
 */
export class DataLossWatch {
  readonly #flag: FleetFlag
  /** Set for as long as this process waits to set the flag. */
  readonly #mark: FleetFlag
  readonly #recovery: RecoveryWait
  readonly #reportAgain: () => Promise<boolean>
  #isRestoring = false
  #isClosed = false

  /** @param reportAgain reports this process' own calls to the store; false if that failed */
  constructor(
    { name, store }: { readonly name: string; readonly store: Store },
    recovery: RecoveryWait,
    reportAgain: () => Promise<boolean>,
  ) {
    this.#flag = new FleetFlag(`outbound.${name}.known`, store)
    this.#mark = new FleetFlag(`outbound.${name}.waits`, store, randomUUID())
    this.#recovery = recovery
    this.#reportAgain = reportAgain
  }

  /** Checks that a permit adds. */
  get checks(): readonly Check[] {
    return this.#flag.checks(0)
  }

  /** Reads from a decision with these checks that nothing was lost. */
  isWholeBy(decision: Decision): boolean {
    const isSet = this.#flag.isSetBy(decision)
    if (isSet === false) this.#miss()
    return isSet === true && !this.#isRestoring
  }

  /** Reads the flag without a permit. */
  async look(): Promise<void> {
    if ((await this.#leftMs(this.#flag)) === 0) this.#miss()
  }

  close(): void {
    this.#isClosed = true
  }

  #miss(): void {
    if (this.#isRestoring) return
    this.#isRestoring = true
    this.#recovery.dataLost()
    background(this.#restore())
  }

  async #restore(): Promise<void> {
    let isReported = false
    let isMarked = false
    while (!this.#isClosed) {
      if (!isMarked) {
        const { restMs } = this.#recovery
        const waitMs = Number.isFinite(restMs) ? restMs : 0
        isMarked = await this.#tried(this.#mark.set(markMs + waitMs))
        // The report and the wait begin after the mark.
        if (isMarked) this.#recovery.dataLost()
      }
      if (isMarked) isReported ||= await this.#reportAgain()
      await backgroundSleep(Math.min(pollMs, this.#recovery.restMs))
      const leftMs = await this.#leftMs(this.#flag)
      if (leftMs === undefined || !isReported || !isMarked) continue
      const markedMs = await this.#leftMs(this.#mark)
      if (markedMs === undefined) continue
      if (markedMs === 0) {
        // The reports of other processes are lost too. A flag that is set may be an old one of this
        // process that came late.
        this.#recovery.dataLost()
        if (await this.#tried(this.#flag.clear())) {
          isReported = false
          isMarked = false
        }
      } else if (leftMs > 0) break
      else if (this.#recovery.restMs === 0) await this.#tried(this.#flag.set(flagMs))
    }
    this.#isRestoring = false
    if (isMarked) await this.#tried(this.#mark.clear())
  }

  /**
   * Resolves to true if the work succeeded. Otherwise the store is unavailable again, and a new
   * wait follows.
   */
  async #tried(work: Promise<boolean>): Promise<boolean> {
    const isDone = await work
    if (!isDone) this.#recovery.storeFailed()
    return isDone
  }

  async #leftMs(flag: FleetFlag): Promise<number | undefined> {
    const leftMs = await flag.leftMs()
    if (leftMs === undefined) this.#recovery.storeFailed()
    else this.#recovery.storeAnswered()
    return leftMs
  }
}
