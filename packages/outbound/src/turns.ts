import { errorText, sleep, warnOnce } from '@sluice/core'
import { background } from './background.ts'
import { CallNotMade } from './call.ts'
import type { RefusalReason } from './event.ts'
import type { Held, Slots } from './fleet/quotas.ts'

/** How soon it is tried again after an error that nobody expects. */
const errorRetryMs = 1_000

/** Has the calls of this process wait for their slots, one after the other. */
export class Turns {
  readonly #slots: Slots
  readonly #maxWaitMs: number
  readonly #line = new WaitLine()
  readonly #leaving = new Map<Waiting, (reason: RefusalReason) => void>()
  #isAsking = false

  constructor(slots: Slots, maxWaitMs: number) {
    this.#slots = slots
    this.#maxWaitMs = maxWaitMs
  }

  get waiting(): number {
    return this.#line.length
  }

  /** Waits for the slots of a call; rejects with `CallNotMade`. */
  wait(call: Pick<Waiting, 'cost' | 'priority'>, signal: AbortSignal | undefined): Promise<Held> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { ...call, admit: (held) => settle(() => resolve(held)) }
      const leave = (reason: RefusalReason): void => {
        this.#line.remove(waiting)
        settle(() => reject(new CallNotMade(reason)))
      }
      const timer = setTimeout(() => leave('timeout'), this.#maxWaitMs)
      const abort = (): void => leave('aborted')
      const settle = (answer: () => void): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        this.#leaving.delete(waiting)
        answer()
      }
      signal?.addEventListener('abort', abort, { once: true })
      this.#leaving.set(waiting, leave)
      this.#line.add(waiting)
      if (!this.#isAsking) background(this.#ask())
    })
  }

  /** Sends all away. */
  close(): void {
    for (const leave of [...this.#leaving.values()]) leave('closed')
  }

  /** Only the first in the line asks, so that a process asks once at a time. */
  async #ask(): Promise<void> {
    this.#isAsking = true
    for (let first = this.#line.first; first; first = this.#line.first) {
      const retryMs = await this.#askFor(first)
      if (retryMs > 0) await sleep(retryMs)
    }
    this.#isAsking = false
  }

  /** Returns how long to wait before the next asks. */
  async #askFor({ cost }: Waiting): Promise<number> {
    try {
      const taken = await this.#slots.take(cost)
      if ('retryMs' in taken) return taken.retryMs
      // It may have left meanwhile, or another may have come before it: whoever is first now, and as cheap, has the slots.
      const next = this.#line.first
      if (next?.cost === cost) {
        this.#line.remove(next)
        next.admit(taken)
      } else {
        await this.#slots.giveBack(taken)
      }
      return 0
    } catch (error) {
      const reason = errorText(error)
      warnOnce(`an outbound could not ask for slots, and tries again: ${reason}`)
      return errorRetryMs
    }
  }
}

/** A call that waits for its slots. */
export interface Waiting {
  readonly cost: number
  /** The higher goes first; of one priority, who came first. */
  readonly priority: number
  /** Told that the call may be made, with its slots. */
  readonly admit: (held: Held) => void
}

/** Calls in the order in which they are made. */
export class WaitLine {
  readonly #calls: Waiting[] = []

  get length(): number {
    return this.#calls.length
  }

  get first(): Waiting | undefined {
    return this.#calls[0]
  }

  add(call: Waiting): void {
    let at = this.#calls.length
    while (at > 0 && (this.#calls[at - 1]?.priority ?? 0) < call.priority) at -= 1
    this.#calls.splice(at, 0, call)
  }

  /** Whether it still waited. */
  remove(call: Waiting): boolean {
    const at = this.#calls.indexOf(call)
    if (at !== -1) this.#calls.splice(at, 1)
    return at !== -1
  }
}
