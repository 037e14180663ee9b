import { randomUUID } from 'node:crypto'
import type { Decision, Store } from '@sluice/core'
import { background, backgroundSleep } from './background.ts'
import { FleetFlag } from './flag.ts'
import type { RecoveryWait } from './recovery-wait.ts'

/**
 * Lifetime (ms) of the flag. Once a year it expires, and the fleet waits although nothing was lost.
 */
const flagMs = 365 * 86_400_000

const pollMs = 250

/** Time (ms) for which a waiting process's mark outlives its wait for the flag. */
const markMs = 3_600_000

/**
 * Detects that the store has lost the fleet's data. The fleet keeps a flag in the store, which
 * every permit reads in the same atomic step. A process that finds no flag permits nothing for a
 * while, and reports its own calls to the store. Then it sets the flag again, unless its own mark
 * is gone too: then the store has lost its data again.
 */
export class DataLossWatch {
  /** Indicates that the store has the fleet's data. Every permit reads it. */
  readonly flag: FleetFlag
  /** Set while this process waits to set the flag. */
  readonly #mark: FleetFlag
  readonly #recovery: RecoveryWait
  readonly #reportAgain: () => Promise<boolean>
  #isRestoring = false
  #isClosed = false

  /** @param reportAgain reports this process's own calls to the store; false if that failed */
  constructor(
    { name, store }: { readonly name: string; readonly store: Store },
    recovery: RecoveryWait,
    reportAgain: () => Promise<boolean>,
  ) {
    const all = { store, recovery }
    this.flag = new FleetFlag({ ...all, name: `outbound.${name}.known` })
    this.#mark = new FleetFlag({ ...all, name: `outbound.${name}.waits`, key: randomUUID() })
    this.#recovery = recovery
    this.#reportAgain = reportAgain
  }

  /** Reads from a decision with the check of the flag that nothing was lost. */
  isWholeBy(decision: Decision): boolean {
    const isSet = this.flag.isSetBy(decision)
    if (isSet === false) this.#miss()
    return isSet === true && !this.#isRestoring
  }

  /** Reads the flag without a permit. */
  async look(): Promise<void> {
    if ((await this.flag.leftMs()) === 0) this.#miss()
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
    while (!this.#isClosed && !(await this.#isRestored())) await backgroundSleep(pollMs)
    this.#isRestoring = false
    await this.#mark.clear()
  }

  /** Waits for the recovery. False if the store fails, or loses its data again. */
  async #isRestored(): Promise<boolean> {
    const { restMs } = this.#recovery
    const waitMs = Number.isFinite(restMs) ? restMs : 0
    if (!(await this.#mark.set(markMs + waitMs))) return false
    // The report and the wait begin after the mark.
    this.#recovery.dataLost()
    if (!(await this.#reportAgain())) return false
    while (!this.#isClosed) {
      await backgroundSleep(Math.min(pollMs, this.#recovery.restMs))
      const knownMs = await this.flag.leftMs()
      const markedMs = await this.#mark.leftMs()
      if (knownMs === undefined || markedMs === undefined) continue
      if (markedMs === 0) {
        // The reports of other processes are lost too. A flag that is set may be this process's own
        // old flag, which arrived late.
        this.#recovery.dataLost()
        if (await this.flag.clear()) return false
      } else if (knownMs > 0) return true
      else if (this.#recovery.restMs === 0) await this.flag.set(flagMs)
    }
    return true
  }
}
