import { processWide, warnOnce } from '@sluice/core'

const usedAtOnce = processWide('@sluice/http/used-at-once/1', () => ({ guards: 0 }))

/**
 * Notices guards that are made for each request. One guard that is used as soon as it is made may
 * be kept for later requests. A second one shows that a handler makes guards.
 */
export class FirstUse {
  #isDue: boolean

  constructor(isNoticed: boolean) {
    this.#isDue = isNoticed
    // Not a timer: code that runs synchronously after the making of the guard comes before this.
    void Promise.resolve().then(() => {
      this.#isDue = false
    })
  }

  get isDue(): boolean {
    return this.#isDue
  }

  see(where: string): void {
    this.#isDue = false
    usedAtOnce.guards += 1
    if (usedAtOnce.guards < 2) return
    warnOnce(
      `${where} was called while a request was handled: a limiter that is made for each request begins to count anew each time, and so limits ` +
        `nothing. Make it once, outside of handlers, and use it in them`,
      'limiter made per request',
    )
  }
}
