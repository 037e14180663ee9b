import { createLimiter, type Decision, type Limiter, type Store } from '@sluice/core'

const key = 'outbound'

/** How long a pause outlives the process that keeps it up. */
const leaseMs = 2_000
const renewMs = 500

/** While a third party wants no calls, whoever was told so holds a lease, which every process of the fleet looks at. */
export class Pause {
  readonly #limiter: Limiter
  #until = 0
  #held: Promise<Decision> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(name: string, store: Store) {
    this.#limiter = createLimiter({
      policies: [
        { name: `outbound.${name}.pause`, algorithm: 'concurrency', limit: 1, lease: leaseMs },
      ],
      store,
      failureMode: 'closed',
      deadlineMs: 1_000,
    })
  }

  /** Whether no calls are to be made, by all that any process of the fleet was told. */
  async isOn(): Promise<boolean> {
    if (Date.now() < this.#until) return true
    const { allowed, source } = await this.#limiter.peek(key)
    return !allowed || source !== 'store'
  }

  /** Holds up the fleet for so long, or for as long as it is held up already. */
  begin(forMs: number): void {
    this.#until = Math.max(this.#until, Date.now() + forMs)
    this.#held ??= this.#limiter.charge(key)
    this.#timer ??= setInterval(() => void this.#keepUp(), renewMs).unref()
  }

  async close(): Promise<void> {
    this.#until = 0
    await this.#keepUp()
  }

  async #keepUp(): Promise<void> {
    const held = await this.#held
    if (!held) return
    if (Date.now() < this.#until) {
      await this.#limiter.renew(held)
      return
    }
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#held = undefined
    await this.#limiter.release(held)
  }
}
