import {
  type DecisionEvent,
  functionOption,
  invalid,
  type LimiterEvent,
  noteRelease,
  type Option,
  type OptionsOf,
  type ResilienceEvent,
  readOptions,
  type ShadowEvent,
  type SkipEvent,
  type StoreCall,
} from '@sluice/core'
import { countInstead } from '@sluice/core/backend'
import { type CountedDecision, countedPart, DecisionBatch } from './decision-batch.ts'
import { FleetCounts } from './fleet-counts.ts'
import { FleetExchange, type FleetStore, type Scope } from './fleet-exchange.ts'
import { FleetKeys, type TopKeysAnswer, type TopKeysOptions } from './fleet-keys.ts'
import { fleetLimits } from './fleet-limits.ts'
import type { InstrumentName } from './instruments.ts'
import { PolicyCounts } from './policy-counts.ts'
import { RequestCounts } from './request-counts.ts'
import { type Family, SeriesTable, type Tap } from './series.ts'
import { StoreReadings } from './store-readings.ts'
import {
  type WatchedOutbound,
  type WatchedQueue,
  WorkCounts,
  type WorkEvent,
} from './work-counts.ts'

/** The options of `collectMetrics`. */
class MetricsTable {
  /**
   * Store of the limiters. Key digests then match the store's, and processes exchange counts and
   * busiest keys every few seconds.
   * @default none: only this process, and digests without a secret
   */
  store?: Option<FleetStore, FleetStore> = (store = {}, option) => {
    if (typeof store === 'object' && store !== null) return store
    throw invalid({ option }, store, 'a store, such as redisStore(client)')
  }
  /** Names an identity, such as a customer, among the top keys. @default only its digest */
  reveal?: Option<(key: string) => string | undefined> = functionOption(
    'a function of the identity',
  )
}

/** Options of `collectMetrics`. */
export interface MetricsOptions extends OptionsOf<MetricsTable> {}

/** Metrics of all processes that share a store. */
export interface FleetSnapshot extends Scope {
  /**
   * All metrics. Requests, checks, near misses and decision times cover the whole fleet since this
   * process started, or since it first heard of an older process. Counts of departed processes
   * stay, so that sums only grow. All other metrics cover this process.
   */
  readonly families: readonly Family[]
}

/**
 * Collects the metrics of limiters, queues, outbounds and clients. It is an observer: add it to
 * their `observers`.
 */
export interface Metrics {
  /** Returns the busiest keys of one policy; `undefined` for an unknown policy. */
  topKeys(options: TopKeysOptions): TopKeysAnswer | undefined
  /** Returns the current metrics, and reads the depth of queues. */
  read(): Promise<readonly Family[]>
  /** Returns the current metrics; the gauges of queues are from the last `read`. */
  snapshot(): readonly Family[]
  /** Like `snapshot`, with counts of the whole fleet, a few seconds old. */
  fleetSnapshot(): FleetSnapshot
  /** Forwards each further value of a histogram to another histogram. */
  tap(name: InstrumentName, tap: Tap): void
  onDecision(event: DecisionEvent): void
  onShadow(event: ShadowEvent): void
  onSkip(event: SkipEvent): void
  onResilience(event: ResilienceEvent): void
  onStoreCall(call: StoreCall): void
  onLimiter(limiter: LimiterEvent): void
  onEvent(event: WorkEvent): void
  onQueue(queue: WatchedQueue): void
  onOutbound(outbound: WatchedOutbound): void
  onWaited(event: { readonly reason: string; readonly waitedMs: number }): void
  onGiveUp(event: { readonly reason: string }): void
  /** Stops the exchange with other processes. Everything else continues. */
  close(): void
}

/**
 * Creates the metrics of a process. They are bounded, and identities are never labels.
 * @example
 * const metrics = collectMetrics({ store })
 * app.use('/metrics', mount(metricsPage(metrics)))
 * app.use(rateLimit({ limit: 100, window: '1m', store, observers: [metrics] }))
 * @throws SluiceError if an option is unknown or invalid
 */
export function collectMetrics(options: MetricsOptions = {}): Metrics {
  noteRelease('@sluice/metrics')
  const { store, reveal } = readOptions(new MetricsTable(), options, 'collectMetrics')
  const table = new SeriesTable()
  const requests = new RequestCounts(table)
  const policies = new PolicyCounts(table, store)
  const batch = new DecisionBatch(countDecision)
  const fleetKeys = new FleetKeys(policies, batch)
  const fleetCounts = new FleetCounts(snapshot)
  const fleet = new FleetExchange(store, [fleetKeys, fleetCounts, fleetLimits(store)])
  const work = new WorkCounts(table)
  const stores = new StoreReadings(table)
  const decisionSeconds = table.of('sluice_decision_seconds')
  let latestName: string | undefined
  let latestSlot = 0

  function countDecision(event: CountedDecision): void {
    const { decision, route, durationMs, answeredBy, policy } = event
    if (answeredBy !== latestName) latestSlot = decisionSeconds.slot(answeredBy)
    latestName = answeredBy
    decisionSeconds.observe(latestSlot, durationMs / 1_000)
    policies.decided(event, requests.decided(event))
    if (!decision.allowed && policy) policies.denied(policy, requests.labelOf(route))
  }

  function snapshot(): readonly Family[] {
    batch.countAll()
    stores.read()
    policies.read()
    return table.read()
  }

  function onDecision(event: DecisionEvent): void {
    batch.add(countedPart(event))
  }
  countInstead(onDecision, (decision) => batch.add(decision))

  return {
    onDecision,
    onShadow: ({ outcomes, checks }) => policies.shadowed(outcomes, checks),
    onSkip: ({ route, method }) => requests.add(route, method, 'skipped'),
    onResilience: (event) => stores.note(event),
    onStoreCall: (call) => stores.noteCall(call),
    onLimiter(limiter) {
      stores.watch(limiter)
      for (const policy of limiter.policies) {
        if (policy.limit !== Number.POSITIVE_INFINITY) policies.introduce(policy, limiter)
      }
    },
    onEvent: (event) => work.note(event),
    onQueue: (queue) => work.watchQueue(queue),
    onOutbound: (outbound) => work.watchOutbound(outbound),
    onWaited({ reason, waitedMs }) {
      table.observe('sluice_client_wait_seconds', waitedMs / 1_000, reason)
    },
    onGiveUp: ({ reason }) => table.add('sluice_client_give_ups_total', 1, reason),
    close: () => fleet.close(),

    tap(name, tap) {
      batch.countOneByOne()
      table.of(name).tap(tap)
    },

    async read() {
      await work.read()
      return snapshot()
    },

    snapshot,

    fleetSnapshot: () => ({ ...fleet.scope, families: fleetCounts.read() }),
    topKeys: (asked) => fleetKeys.answer(asked, fleet.scope, reveal),
  }
}
