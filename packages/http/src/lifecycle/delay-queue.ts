import type { Hold } from '../request/passage.ts'

/** A request that waits. The end of its response ends the wait, and the request ends with it. */
interface DelayedRequest extends Hold {
  /** Returns whether the request continues. Never rejects. */
  readonly turn: Promise<boolean>
}

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

  add(delayMs: number): DelayedRequest {
    this.#waiting += 1
    let end: ((goesOn: boolean) => void) | undefined
    const turn = new Promise<boolean>((resolve) => {
      // Not unref'ed: nearly always an open connection keeps the process alive anyway, and without
      // one (Fastify's inject, serverless platforms) the request would go unanswered.
      const timer = setTimeout(() => end?.(true), delayMs)
      end = (goesOn) => {
        end = undefined
        clearTimeout(timer)
        this.#waiting -= 1
        resolve(goesOn)
      }
    })
    const leave = () => end?.(false)
    return { turn, finish: leave, abort: leave }
  }
}
