import type { Hold } from '../request/hold.ts'

/** Holds requests until their turn comes, up to a bound. */
export class DelayQueue {
  readonly #maxWaiting: number
  #waiting = 0

  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting
  }

  get waiting(): number {
    return this.#waiting
  }

  get isFull(): boolean {
    return this.#waiting >= this.#maxWaiting
  }

  /** Holds a request until its turn comes, `delayMs` from now, or its response is over before. */
  add(delayMs: number): DelayedRequest {
    this.#waiting += 1
    return new DelayedRequest(delayMs, () => {
      this.#waiting -= 1
    })
  }
}

/** A request that waits. The end of its response ends the wait, and the request ends with it. */
class DelayedRequest implements Hold {
  /** Tells whether the request continues. Never rejects. */
  readonly turn: Promise<boolean>
  readonly #leave: () => void
  #resolve: ((goesOn: boolean) => void) | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(delayMs: number, leave: () => void) {
    this.#leave = leave
    this.turn = new Promise((resolve) => {
      this.#resolve = resolve
    })
    // Not unref'ed: nearly always an open connection keeps the process alive anyway, and without
    // one (Fastify's inject, serverless platforms) the request would go unanswered.
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
