import type { AlgorithmSettings, Counting, CountingName } from '../algorithms/table.ts'

/**
 * The mode while the store fails: `fallback` decides in bounded local memory, `open` lets
 * everything pass, `closed` refuses everything (503).
 */
export type FailureMode = 'fallback' | 'open' | 'closed'

export const failureModes: readonly FailureMode[] = ['fallback', 'open', 'closed']

/** The unit that a quota counts, named as in the IETF draft's registry. */
export type QuotaUnit = 'requests' | 'content-bytes' | 'concurrent-requests'

/** The place where a `regionalStore` decides a policy. */
export type Reach = 'region' | 'global'

/** A validated policy, for limiters and stores. */
export interface Policy extends AlgorithmSettings {
  /** Identity of the quota in a store: URL-safe, the same in all processes with the same code. */
  readonly id: string
  /** The name in headers, metrics and errors. */
  readonly name: string
  /** True if the user named the policy, and thereby shares it. */
  readonly named: boolean
  /**
   * Units per window, or in flight, without the headroom; `Infinity` for `unlimited`. For a
   * penalty, the strikes that lead to a block.
   */
  readonly limit: number
  /** True if each request brings its own limit, and `limit` is only a placeholder. */
  readonly limitPerRequest: boolean
  /** The share of the declared limit that is left free, also for limits that come with a check. */
  readonly headroom: number
  /** For `concurrency`, how long a lease runs; for a penalty, how long strikes count. */
  readonly windowMs: number
  readonly algorithm: CountingName
  /** The counting method: the algorithm, or the algorithm combined with units held by processes. */
  readonly counting: Counting
  /** Lifetime of a grant (ms); 0 for a policy without grants. */
  readonly prefetchMs: number
  /** Lifetime of reserved units (ms); 0 for a policy without `reserve`. */
  readonly reserveMs: number
  /** Units of a key that a process may admit before the store has counted them; 0 for none. */
  readonly maxUncounted: number
  readonly reach: Reach
  readonly countDenied: boolean
  /** For a penalty: true if its key starts over after a block. @default false */
  readonly thenReset?: boolean
  readonly hidden: boolean
  readonly unit: QuotaUnit
  /** The share of keys for which the policy is enforced: usually 1; 0 in shadow mode. */
  readonly enforcedShare: number
  /** `undefined` for the limiter's. */
  readonly failureMode: FailureMode | undefined
}
