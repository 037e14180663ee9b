import type { AlgorithmSettings, Counting, CountingName } from '../algorithms/table.ts'

/**
 * The mode while the store fails: `fallback` decides in bounded local memory, `open` lets
 * everything pass, `closed` refuses everything (503).
 */
export type FailureMode = 'fallback' | 'open' | 'closed'

export const failureModes: readonly FailureMode[] = ['fallback', 'open', 'closed']

/** The unit that a quota counts, by the names of the registry of the IETF draft. */
export type QuotaUnit = 'requests' | 'content-bytes' | 'concurrent-requests'

/** The place where a `regionalStore` decides a policy. */
export type Reach = 'region' | 'global'

/** A checked policy, as limiters and stores use it. */
export interface Policy extends AlgorithmSettings {
  /** Identity of the quota in a store: URL-safe, the same in all processes of the same code. */
  readonly id: string
  /** The name in headers, metrics and errors. */
  readonly name: string
  /** True when the user named the policy, and so shares it. */
  readonly named: boolean
  /**
   * Units per window, or in flight, without the headroom; `Infinity` for `unlimited`. For a
   * penalty, the strikes that lead to a block.
   */
  readonly limit: number
  /** True if each request brings its own limit, and `limit` is only a placeholder. */
  readonly limitPerRequest: boolean
  /** The share of the declared limit that is left free; of limits that come with a check too. */
  readonly headroom: number
  /** For `concurrency`, how long a lease runs; for a penalty, how long strikes count. */
  readonly windowMs: number
  readonly algorithm: CountingName
  /** Names the counting: the algorithm, or that algorithm beside units that processes hold. */
  readonly counting: Counting
  /** Life of a grant, in ms; 0 for a policy without grants. */
  readonly prefetchMs: number
  /** Life of the units that work reserves, in ms; 0 for a policy without `reserve`. */
  readonly reserveMs: number
  /** Units of a key that a process may admit before the store has counted them; 0 for none. */
  readonly maxUncounted: number
  readonly reach: Reach
  readonly countDenied: boolean
  /** Of a penalty: whether its key begins anew after a block. @default false */
  readonly thenReset?: boolean
  readonly hidden: boolean
  readonly unit: QuotaUnit
  /** The share of the keys that the policy is enforced for: 1 nearly always, 0 in shadow. */
  readonly enforcedShare: number
  /** `undefined`: the limiter's. */
  readonly failureMode: FailureMode | undefined
}
