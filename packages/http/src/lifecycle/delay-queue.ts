import type { Hold } from '../request/passage.ts'

/** A waiting request. If its response ends, the wait ends, and the request does not continue. */
interface DelayedRequest extends Hold {
  /** Resolves to whether the request continues. Never rejects. */
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
      // Not unref'ed: an open connection usually keeps the process alive anyway, and without one
      // (Fastify's inject, serverless platforms) the request would go unanswered.
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
