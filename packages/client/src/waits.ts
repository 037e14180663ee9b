import type { Call } from './calls/call.ts'
import { type GiveUpEvent, type Settings, tell, type WaitEvent } from './options.ts'
import { clockMs, never, pause, type Waiting } from './runtime/clock.ts'

export interface Wait {
  readonly reason: WaitEvent['reason']
  readonly waitMs: number
  /** True if the wait ends only when it is woken. */
  readonly isOpenEnded?: boolean
  /** True if the wait is over already. */
  isOver?(): boolean
  /** Names of the policies that are waited for. */
  readonly policies: readonly string[]
  /** Sets of waiting calls that may wake this one. */
  readonly at: readonly Waiting[]
}

/** The waits of one call: for how long it may still wait, and the events about that. */
export class CallWaits {
  readonly #call: Call
  readonly #settings: Settings
  readonly #soFar: () => Pick<WaitEvent, 'tries' | 'response'>
  #leftMs: number

  constructor(call: Call, settings: Settings, soFar: () => Pick<WaitEvent, 'tries' | 'response'>) {
    this.#call = call
    this.#settings = settings
    this.#soFar = soFar
    this.#leftMs = settings.maxTotalWaitMs
  }

  /** Longest further wait (ms) of the call, given the wait so far. */
  patienceMs(waitedMs: number): number {
    return Math.min(this.#settings.maxWaitMs, Math.max(0, this.#leftMs - waitedMs))
  }

  async wait({ at, isOpenEnded, isOver, ...wait }: Wait): Promise<'over' | 'woken'> {
    const nowMs = clockMs()
    const event = { ...this.#state(), ...wait }
    tell(this.#settings.observers, (observer) => observer.onWait?.(event))
    try {
      // An observer may have taken time, or made calls of its own.
      if (isOver?.()) return 'woken'
      const untilMs = isOpenEnded ? never : nowMs + wait.waitMs
      return await pause(untilMs, this.#call.signal, at)
    } finally {
      const waitedMs = clockMs() - nowMs
      this.#leftMs = Math.max(0, this.#leftMs - waitedMs)
      tell(this.#settings.observers, (observer) => observer.onWaited?.({ ...event, waitedMs }))
    }
  }

  giveUp(reason: GiveUpEvent['reason'], waitMs?: number): void {
    const event = { ...this.#state(), reason, waitMs }
    tell(this.#settings.observers, (observer) => observer.onGiveUp?.(event))
  }

  #state() {
    const { method, url } = this.#call
    return { method, url: url.href, ...this.#soFar() }
  }
}
