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

  /**
   * Holds a request until its turn comes, `delayMs` from now. If its response ends before, it does
   * not go on. `turn` tells whether it does, and never rejects.
   */
  add(delayMs: number): Hold & { readonly turn: Promise<boolean> } {
    this.#waiting += 1
    let end = (_goesOn: boolean): void => undefined
    const turn = new Promise<boolean>((resolve) => {
      // Not unref'ed: nearly always an open connection keeps the process alive anyway, and without
      // one (Fastify's inject, serverless platforms) the request would go unanswered.
      const timer = setTimeout(() => end(true), delayMs)
      end = (goesOn) => {
        end = () => undefined
        clearTimeout(timer)
        this.#waiting -= 1
        resolve(goesOn)
      }
    })
    return { turn, finish: () => end(false), abort: () => end(false) }
  }
}
