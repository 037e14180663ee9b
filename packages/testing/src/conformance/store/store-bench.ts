import {
  type AlgorithmName,
  createLimiter,
  type Duration,
  type Limiter,
  type Outcome,
  type PeekedOutcome,
  type PolicyFields,
  type PolicyOptions,
  type Store,
} from '@sluice/core'
import { algorithms } from '@sluice/core/backend'
import type { FakeClock } from '../../fake-clock.ts'
import { same } from '../assertions.ts'

export interface TestedPolicy {
  readonly name: string
  readonly limit: number
  /** @default '1m' */
  readonly window?: Duration
  readonly countDenied?: boolean
}

/** One test of a store. */
export type StoreCase = (bench: StoreBench) => Promise<void>

/** Tests by name. */
export type StoreCases = Readonly<Record<string, StoreCase>>

/** A store in one test of one algorithm, with helpers for tests. */
export class StoreBench {
  readonly store: Store
  readonly clock: FakeClock
  readonly algorithm: AlgorithmName
  #failure: Error | undefined

  constructor(store: Store, clock: FakeClock, algorithm: AlgorithmName) {
    this.store = store
    this.clock = clock
    this.algorithm = algorithm
  }

  /** The wait for a lease is a hint, and leases do not return over time. */
  get isExact(): boolean {
    return !takesLeases(this.algorithm)
  }

  /** Maximum time (ms) for which a unit counts with a one-minute policy. */
  get lifeMs(): number {
    return Math.max(
      ...this.limiter({ name: 'p', limit: 1 }).policies.map(algorithms[this.algorithm].lifeMs),
    )
  }

  /** The first store failure: a limiter would decide without the store, and hide it. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** A limiter whose policies all use the algorithm. It waits for a slow store. */
  limiter(...policies: readonly TestedPolicy[]): Limiter {
    return this.limiterOver(this.store, policies)
  }

  limiterOver(store: Store, policies: readonly TestedPolicy[]): Limiter {
    return createLimiter({
      store,
      deadlineMs: 60_000,
      observers: {
        onStoreError: ({ error }) => {
          this.#failure ??= new Error(`the store failed: ${describeCause(error)}`, { cause: error })
        },
      },
      policies: policies.map((policy) => policyOf(this.algorithm, policy)),
    })
  }

  async left(limiter: Limiter, key: string): Promise<readonly (number | undefined)[]> {
    return (await limiter.peek(key)).outcomes.map(({ remaining }) => remaining)
  }

  async isAdmitted(limiter: Limiter, promise: string, expected = true, cost = 1): Promise<void> {
    const { allowed, source } = await limiter.consume('k', { cost })
    same(source, 'store', 'the store decides by itself')
    same(allowed, expected, promise)
  }
}

function describeCause({ message, cause }: Error): string {
  return cause instanceof Error ? cause.message : message
}

/** The parts of an outcome on which all stores must agree. */
export function comparable(outcome: Outcome | PeekedOutcome): object {
  const { allowed, limit, remaining, resetMs, retryAfterMs, delayMs } = outcome
  return { allowed, limit, remaining, resetMs, retryAfterMs, delayMs }
}

/** A policy that admits `limit` units at once, and then none for a window or a lease. */
function policyOf(
  algorithm: AlgorithmName,
  { window = '1m', ...policy }: TestedPolicy,
): PolicyOptions {
  if (takesLeases(algorithm)) return { ...policy, algorithm, lease: window }
  const own: Partial<PolicyFields> = algorithms[algorithm].delayMs
    ? { queue: Math.max(0, policy.limit - 1) }
    : {}
  return { ...policy, ...own, algorithm, window }
}

export function takesLeases(algorithm: AlgorithmName): algorithm is 'concurrency' {
  return algorithms[algorithm].counts === 'leases'
}
