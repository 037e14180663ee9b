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
import { type CountedDecision, countInstead } from '@sluice/core/backend'
import { countedPart, DecisionBatch } from './decision-batch.ts'
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
   * Store of the limiters. Key digests match those in the store, and the processes exchange counts
   * and busiest keys every few seconds.
   * @default none: this process alone, and digests without a secret
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
   * All metrics. Requests, checks, near misses and times of decisions are those of the whole fleet
   * since this process started, or since it first heard of another process that is older. Counts of
   * processes that have left stay, so that sums only grow. All other metrics tell of this process.
   */
  readonly families: readonly Family[]
}

/**
 * Counts what limiters, queues, outbounds and clients tell. It is an observer: put it into their
 * option `observers`.
 */
export interface Metrics {
  /** The busiest keys of one policy. `undefined` for a policy that is not known. */
  topKeys(options: TopKeysOptions): TopKeysAnswer | undefined
  /** All metrics as they stand. Queues are asked how full they are. */
  read(): Promise<readonly Family[]>
  /** All metrics as they stand. Queues are not asked: their gauges are those of the last `read`. */
  snapshot(): readonly Family[]
  /** As `snapshot`, with counts of the whole fleet, some seconds late. */
  fleetSnapshot(): FleetSnapshot
  /** Has each further value of a histogram passed on to another histogram. */
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
  /** Ends the exchange with other processes. All else continues. */
  close(): void
}

/**
 * Makes the metrics of a process. They are bounded, and no identity is a label.
 * @example
 * const metrics = collectMetrics({ store })
 * app.use('/metrics', mount(metricsPage(metrics)))
 * app.use(rateLimit({ limit: 100, window: '1m', store, observers: [metrics] }))
 * @throws SluiceError if an option is unknown or of another form
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
