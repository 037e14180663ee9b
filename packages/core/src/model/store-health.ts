import type { BreakerState } from './resilience-event.ts'

/** The health of a store, for the limiters of this process. */
export interface StoreHealth {
  readonly breaker: BreakerState
  /** True while failure modes decide at least some requests. */
  readonly isAway: boolean
  /** The number of processes that share the store, as last seen. */
  readonly instances: number
  /** Ms by which the store's clock is ahead of this process's clock. */
  readonly clockSkewMs: number
  /** Keys with units admitted without the store that it has not counted yet. */
  readonly keysOwed: number
  /** Units that this process admitted for `async` policies and that the store has not confirmed. */
  readonly uncountedUnits: number
  /** Maximum units of such a key over its limit: `maxUncounted` per process, 0 if none. */
  readonly uncountedBound: number
  readonly counters: Readonly<ResilienceCounters>
  /** Units of grants, for policies with `prefetch`, and of the pool of regions. */
  readonly grants: Readonly<GrantCounters>
  /** Number of keys that this process takes grants for. */
  readonly hotKeys: number
}

/** Counters since the start of the process: they only grow. */
export interface ResilienceCounters {
  /** Checks that were not answered in time. */
  deadlinesMissed: number
  /** Times that the breaker opened. */
  breakerOpened: number
  /** Outages: number of times that failure modes took over. */
  fallbacksEntered: number
  /** Decisions made by failure modes. */
  decisionsWithout: number
  /** Late answers whose charge was kept, or given back. */
  lateKept: number
  lateRefunded: number
  /** Units that were reported to the store afterwards. */
  unitsReconciled: number
  /** Number of times that clocks were found to differ. */
  clockSkews: number
}

/** Units of grants since the start of the process. The counters only grow. */
export interface GrantCounters {
  /** Units that the store has granted. */
  taken: number
  /** Units spent without calling the store. */
  spent: number
  /** Unspent units returned to the store. */
  returned: number
  /** Units unspent when their grant ended, or whose return was not confirmed. */
  lapsed: number
}
