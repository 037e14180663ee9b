import { notify } from '../observers/notify.ts'
import type { GrantCounters } from '../prefetch/grant.ts'
import type { Store } from '../store.ts'
import type { BreakerState } from './circuit-breaker.ts'
import type { ResilienceEvent } from './resilience-event.ts'

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
  /**
   * Units that this process admitted for policies with `async`, and that the store has not
   * confirmed.
   */
  readonly uncountedUnits: number
  /**
   * Units by which a key of such a policy may be over its limit: `maxUncounted` for each process. 0
   * while no key is decided so.
   */
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
  /** Units that the store was told of afterwards. */
  unitsReconciled: number
  /** Times that the clocks were found to differ. */
  clockSkews: number
}

/** Counts the resilience events of a store, and tells the observers of its limiters. */
export class StoreMonitor {
  readonly counters: ResilienceCounters = noCounts()
  readonly #observers = new Map<unknown, (event: ResilienceEvent) => void>()
  #missed = 0

  /** @param identity by which it is known: limiters that share an observer have it told once */
  observe(observer: (event: ResilienceEvent) => void, identity: unknown = observer): void {
    this.#observers.set(identity, observer)
  }

  /** The part of the health that the store tells, and the counters. */
  healthOf({
    instances = 1,
    clockSkewMs = 0,
  }: Store): Pick<StoreHealth, 'instances' | 'clockSkewMs' | 'counters'> {
    return { instances, clockSkewMs, counters: { ...this.counters } }
  }

  tell(event: ResilienceEvent): void {
    count(this.counters, event)
    for (const observer of this.#observers.values()) notify(observer, event)
  }

  /** Counts a check whose deadline has passed. All deadlines that pass at once are one event. */
  tellMissed(): void {
    this.#missed += 1
    if (this.#missed > 1) return
    void Promise.resolve().then(() => {
      const checks = this.#missed
      this.#missed = 0
      this.tell({ type: 'deadline-missed', checks })
    })
  }
}

function noCounts(): ResilienceCounters {
  return {
    deadlinesMissed: 0,
    breakerOpened: 0,
    fallbacksEntered: 0,
    decisionsWithout: 0,
    lateKept: 0,
    lateRefunded: 0,
    unitsReconciled: 0,
    clockSkews: 0,
  }
}

function count(counters: ResilienceCounters, event: ResilienceEvent): void {
  switch (event.type) {
    case 'deadline-missed':
      counters.deadlinesMissed += event.checks
      return
    case 'breaker':
      if (event.state === 'open') counters.breakerOpened += 1
      return
    case 'fallback-entered':
      counters.fallbacksEntered += 1
      return
    case 'late-reply':
      if (event.charge === 'kept') counters.lateKept += 1
      else counters.lateRefunded += 1
      return
    case 'reconciled':
      counters.unitsReconciled += event.units
      return
    case 'clock-skew':
      counters.clockSkews += 1
      return
    case 'fallback-left':
      return
  }
}

/** The grants of a store, with those of the pool if it is the store of a region. */
export function grantsOf(
  { counters, hotKeys }: { readonly counters: GrantCounters; readonly hotKeys: number },
  { region }: Store,
): Pick<StoreHealth, 'grants' | 'hotKeys'> {
  const { taken, spent, returned, lapsed, hotKeys: ofPool } = region?.grants() ?? noGrants
  return {
    hotKeys: hotKeys + ofPool,
    grants: {
      taken: counters.taken + taken,
      spent: counters.spent + spent,
      returned: counters.returned + returned,
      lapsed: counters.lapsed + lapsed,
    },
  }
}

const noGrants = { taken: 0, spent: 0, returned: 0, lapsed: 0, hotKeys: 0 }
