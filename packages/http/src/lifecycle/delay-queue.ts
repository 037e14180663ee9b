import type { Hold } from './hold.ts'

/** Where requests wait for their turn, as many as there are seats. */
export class WaitingRoom {
  readonly #seats: number
  #waiting = 0

  constructor(seats: number) {
    this.#seats = seats
  }

  get waiting(): number {
    return this.#waiting
  }

  get isFull(): boolean {
    return this.#waiting >= this.#seats
  }

  /** Gives a request a seat until its turn comes, `delayMs` from now, or its response is over before. */
  seat(delayMs: number): Waiter {
    this.#waiting += 1
    return new Waiter(delayMs, () => {
      this.#waiting -= 1
    })
  }
}

/** A request that waits. Whoever settles it, since its response is over, ends the wait: nobody is there to go on. */
class Waiter implements Hold {
  /** Whether the request goes on. Never rejects. */
  readonly turn: Promise<boolean>
  readonly #leave: () => void
  #resolve: ((goesOn: boolean) => void) | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(delayMs: number, leave: () => void) {
    this.#leave = leave
    this.turn = new Promise((resolve) => {
      this.#resolve = resolve
    })
    // Not unref'ed: nearly always an open connection keeps the process alive anyway, and without one (Fastify's inject,
    // serverless platforms) the request would go unanswered.
    this.#timer = setTimeout(() => this.#end(true), delayMs)
  }

  finish(): void {
    this.#end(false)
  }

  abort(): void {
    this.#end(false)
  }

  #end(goesOn: boolean): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#leave()
    this.#resolve?.(goesOn)
  }
}
