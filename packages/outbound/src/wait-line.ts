import type { Held } from './slots.ts'

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
