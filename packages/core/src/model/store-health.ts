import type { BreakerState } from './resilience-event.ts'

/** The health of a store, for the limiters of this process. */
export interface StoreHealth {
  readonly breaker: BreakerState
  /** True while failure modes decide, for some requests at least. */
  readonly isAway: boolean
  /** The number of processes that share the store, as last seen. */
  readonly instances: number
  /** Ms by which the clock of the store is ahead of the one of this process now. */
  readonly clockSkewMs: number
  /** Keys with units that were admitted without the store, and that it has not counted. */
  readonly keysOwed: number
  /** Units that this process admitted for `async` policies and that the store has not confirmed. */
  readonly uncountedUnits: number
  /** Most units of such a key over its limit: `maxUncounted` a process, 0 without such keys. */
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
  /** Outages: times that failure modes took over. */
  fallbacksEntered: number
  /** Decisions that failure modes made. */
  decisionsWithout: number
  /** Answers that came too late, and whose charge was kept, or given back. */
  lateKept: number
  lateRefunded: number
  /** Units that were reported to the store afterwards. */
  unitsReconciled: number
  /** Times that the clocks were found to differ. */
  clockSkews: number
}

/** Units of grants since the start of the process. The counters only grow. */
export interface GrantCounters {
  /** Units that the store has granted. */
  taken: number
  /** Units that were spent without asking the store. */
  spent: number
  /** Units that were not spent, and that the store has back. */
  returned: number
  /** Units that were not spent before their grant ended, or whose return was not confirmed. */
  lapsed: number
}
