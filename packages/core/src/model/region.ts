import type { Policy } from './policy.ts'
import type { GrantCounters } from './store-health.ts'

/** Usage of one region, in units since its processes started. */
export interface RegionUse {
  /** The share of each limit that is guaranteed to the region, 0 to 1. */
  readonly share: number
  /** Units taken from the share. */
  readonly fromShare: number
  /** Units taken from the pool. */
  readonly borrowed: number
  /** Unspent units held from the pool. */
  readonly held: number
}

/** The usage of a region, as last reported by its processes. */
export interface RegionReport extends RegionUse {
  readonly region: string
  /** Processes that have reported within ten seconds. */
  readonly processes: number
}

/** A part of the limit of a policy, in units. */
export interface RegionBound {
  /**
   * - `share`: guaranteed to this region
   * - `pool`: borrowed by all regions
   * - `global`: the whole limit, counted in the global store
   * - `region`: the whole limit, counted in each region
   */
  readonly part: 'share' | 'pool' | 'global' | 'region'
  readonly units: number
}

/** The region of a store that shares limits with other regions. */
export interface StoreRegion {
  readonly name: string
  /** True while the global store does not answer. */
  readonly isGlobalAway: boolean
  /** Returns the usage of this process. */
  use(): RegionUse
  /** Returns the usage of all regions. */
  reports(): readonly RegionReport[]
  /** Returns the parts of the limit of a policy. */
  boundsOf(policy: Policy): readonly RegionBound[]
  /** Returns the units of this process's grants from the pool, and the number of their keys. */
  grants(): GrantCounters & { readonly hotKeys: number }
}
