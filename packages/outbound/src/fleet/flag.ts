import {
  type Check,
  type CheckLimiter,
  createCheckLimiter,
  type Decision,
  type LimiterOptions,
  type Outcome,
  type Store,
} from '@sluice/core'

/** The fleet's single key, so that everything about a call is decided in one step. */
export const fleetKey = 'outbound'

/** A limiter without local fallbacks: a guess could exceed the quotas. */
export function fleetLimiter(options: LimiterOptions): CheckLimiter {
  return createCheckLimiter({ ...options, failureMode: 'closed', deadlineMs: 1_000 })
}

interface FlagOptions {
  readonly name: string
  readonly store: Store
  /** The key, for a flag per process. @default the fleet's key */
  readonly key?: string
  /** Tracks from the flag's calls whether the store is available. */
  readonly recovery?: { storeAnswered(): void; storeFailed(): void }
}

/**
 * A flag that the whole fleet sees, for a time measured by the store. It outlives the process that
 * set it. It is stored as a manual block, which blocks nobody.
 */
export class FleetFlag {
  readonly #limiter: CheckLimiter
  readonly #key: string
  readonly #recovery: FlagOptions['recovery']

  constructor({ name, store, key = fleetKey, recovery }: FlagOptions) {
    this.#limiter = fleetLimiter({ penalty: { after: 'never', name }, store })
    this.#key = key
    this.#recovery = recovery
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
  leftMs(): Promise<number | undefined> {
    return this.#limiter.peek(this.#key).then(
      ({ source, retryAfterMs }) => this.#noted(source === 'store' ? retryAfterMs : undefined),
      () => this.#noted(undefined),
    )
  }

  /** Sets it again. @returns false if the store fails */
  set(forMs: number): Promise<boolean> {
    return this.#isDone(this.#limiter.block(this.#key, `${Math.max(1, Math.ceil(forMs))}ms`))
  }

  /** Clears it. @returns false if the store fails */
  clear(): Promise<boolean> {
    return this.#isDone(this.#limiter.reset(this.#key))
  }

  #isDone(work: Promise<unknown>): Promise<boolean> {
    return work.then(
      () => this.#noted(true) === true,
      () => this.#noted(undefined) === true,
    )
  }

  /** Records whether the store has answered. */
  #noted<T>(answer: T | undefined): T | undefined {
    if (answer === undefined) this.#recovery?.storeFailed()
    else this.#recovery?.storeAnswered()
    return answer
  }

  #outcomeIn({ outcomes }: Decision): Outcome | undefined {
    return outcomes.find(({ policy }) => policy.id === this.#limiter.penalty?.id)
  }
}
