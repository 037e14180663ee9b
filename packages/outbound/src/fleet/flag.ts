import {
  type Check,
  type CheckLimiter,
  createCheckLimiter,
  type Decision,
  type Outcome,
  type PolicyOptions,
  type Store,
} from '@sluice/core'

/** The fleet counts against one key, so that all that concerns one call is decided in one step. */
export const fleetKey = 'outbound'

/** Quotas that only the store decides about: a guess could exceed them. */
export function fleetLimiter(policies: readonly PolicyOptions[], store: Store): CheckLimiter {
  return createCheckLimiter({ policies, store, ...onlyTheStore })
}

const onlyTheStore = { failureMode: 'closed', deadlineMs: 1_000 } as const

/**
 * A flag that the whole fleet sees, for a time that the store keeps. It outlives the process that
 * set it. A block by hand, which nobody is blocked by.
 */
export class FleetFlag {
  readonly #limiter: CheckLimiter
  readonly #key: string

  /** @param key where a process has one of its own */
  constructor(name: string, store: Store, key: string = fleetKey) {
    this.#key = key
    this.#limiter = createCheckLimiter({
      penalty: { after: 'never', name },
      store,
      ...onlyTheStore,
    })
  }

  /** Check on the flag: a cost of 1 is denied while the flag is set, a cost of 0 only reads it. */
  checks(cost: 0 | 1): readonly Check[] {
    const { penalty } = this.#limiter
    return penalty ? [{ policy: penalty, key: this.#key, cost, limit: penalty.limit }] : []
  }

  /** Reads the flag from a decision with its check; `undefined` if unknown. */
  isSetBy(decision: Decision): boolean | undefined {
    const remaining = this.#outcomeIn(decision)?.remaining
    return remaining === undefined ? undefined : remaining === 0
  }

  /** Time (ms) for which the flag denies. */
  leftMsBy(decision: Decision): number {
    return this.#outcomeIn(decision)?.retryAfterMs ?? 0
  }

  /** Time (ms) for which the flag stays set; `undefined` if the store does not say. */
  async leftMs(): Promise<number | undefined> {
    try {
      const { source, retryAfterMs } = await this.#limiter.peek(this.#key)
      return source === 'store' ? retryAfterMs : undefined
    } catch {
      // The store returned an invalid answer.
      return undefined
    }
  }

  /** Sets it anew. @returns false when the store fails */
  set(forMs: number): Promise<boolean> {
    return isDone(this.#limiter.block(this.#key, `${Math.max(1, Math.ceil(forMs))}ms`))
  }

  /** Takes it away. @returns false when the store fails */
  clear(): Promise<boolean> {
    return isDone(this.#limiter.reset(this.#key))
  }

  #outcomeIn({ outcomes }: Decision): Outcome | undefined {
    return outcomes.find(({ policy }) => policy.id === this.#limiter.penalty?.id)
  }
}

function isDone(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  )
}
