import { createLimiter, type Decision, type Limiter, type Store } from '@sluice/core'
import { sleep } from '../sleep.ts'

export interface Quota {
  readonly limit: number
  readonly windowMs: number
}

/** Every process counts against one key. */
const everyone = 'outbound'

/** A lease is renewed this often while its call is under way, so that three renewals may fail. */
const renewalsPerWindow = 4

/** How often the time of an answer is told to a store that fails. */
const mostTries = 6

/**
 * The slots of a third party's quotas. A call holds its units from when it is permitted until a window after its answer: wherever in between
 * the third party counted it, no window of its own has more than the limit. The slots are leases that last a window, renewed until the
 * answer is there and then left to run out, so that the store keeps time for the whole fleet.
 */
export class Slots {
  readonly #limiter: Limiter
  readonly #shortestMs: number
  readonly #underWay = new Set<Decision>()
  #timer: NodeJS.Timeout | undefined

  constructor(name: string, quotas: readonly Quota[], store: Store) {
    this.#shortestMs = Math.min(...quotas.map(({ windowMs }) => windowMs))
    this.#limiter = createLimiter({
      policies: quotas.map(({ limit, windowMs }) => ({
        name: `outbound.${name}.${windowMs}`,
        algorithm: 'concurrency',
        limit,
        lease: windowMs,
      })),
      store,
      failureMode: 'closed',
      deadlineMs: 1_000,
    })
  }

  /** How soon it is worth asking again: when a slot is free is known to no process alone. */
  get retryMs(): number {
    const evenMs = this.#shortestMs / 50
    return Math.min(Math.max(evenMs, 5), 250) * (0.75 + Math.random() / 2)
  }

  async take(cost: number): Promise<Decision | undefined> {
    const decision = await this.#limiter.consume(everyone, { cost })
    if (!decision.allowed || decision.source !== 'store') return undefined
    this.#underWay.add(decision)
    const periodMs = Math.max(1, Math.floor(this.#shortestMs / renewalsPerWindow))
    this.#timer ??= setInterval(() => this.#renewAll(), Math.min(periodMs, 2 ** 31 - 1)).unref()
    return decision
  }

  /** For a call that was not made after all. */
  async giveBack(decision: Decision): Promise<void> {
    this.#end(decision)
    await this.#limiter.release(decision)
  }

  /** The third party has answered: the slots last one window from now. */
  async answered(decision: Decision, cost: number): Promise<void> {
    this.#end(decision)
    for (let tries = 1; tries <= mostTries; tries += 1) {
      if (await this.#limiter.renew(decision)) return
      // The lease ran out meanwhile, or the store fails: new ones last as long, and one too many is no harm.
      const { source } = await this.#limiter.charge(everyone, { cost })
      if (source === 'store') return
      await sleep(50 * 2 ** tries)
    }
  }

  #end(decision: Decision): void {
    this.#underWay.delete(decision)
    if (this.#underWay.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #renewAll(): void {
    for (const decision of this.#underWay) void this.#limiter.renew(decision)
  }
}
