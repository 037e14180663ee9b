import {
  type DecisionEvent,
  invalid,
  isPromise,
  knownFields,
  type LimiterEvent,
  noteRelease,
  oneOf,
  type ResilienceEvent,
  type ShadowEvent,
  type SkipEvent,
  type StoreCall,
  wholeNumber,
} from '@sluice/core'
import { type CountedDecision, countInstead } from '@sluice/core/backend'
import { countedPart, DecisionBatch } from './decision-batch.ts'
import { FleetCounts } from './fleet-counts.ts'
import { FleetExchange, type FleetStore } from './fleet-exchange.ts'
import { FleetKeys, mergedRanking } from './fleet-keys.ts'
import { fleetLimits } from './fleet-limits.ts'
import type { InstrumentName } from './instruments.ts'
import { PolicyCounts } from './policy-counts.ts'
import { RequestCounts, requestResult } from './request-counts.ts'
import { type Family, SeriesTable, type Tap } from './series.ts'
import { StoreReadings } from './store-readings.ts'
import {
  keptCounters,
  type TopKeysBy,
  type TopKeysWindow,
  topKeysBys,
  topKeysWindows,
} from './top-keys.ts'
import {
  type WatchedOutbound,
  type WatchedQueue,
  WorkCounts,
  type WorkEvent,
} from './work-counts.ts'

/** Options of `collectMetrics`. */
export interface MetricsOptions {
  /**
   * The store of the limiters: digests of keys agree with its own, and its fleet adds up counts and
   * busiest keys every few seconds.
   * @default none: this process alone, and digests without a secret
   */
  store?: FleetStore | undefined
  /** Names an identity among the top keys, such as a customer. @default nothing but its digest */
  reveal?: ((key: string) => string | undefined) | undefined
}

/** Options of `topKeys`. */
export interface TopKeysOptions {
  /** The label of the policy, as in the metrics. */
  policy: string
  /** @default 'asked' */
  by?: TopKeysBy | undefined
  /** @default '1m' */
  window?: TopKeysWindow | undefined
  /** Number of keys: 1 to 100. @default 10 */
  most?: number | undefined
}

/** A key with a high count. */
export interface TopKey {
  readonly digest: string
  /**
   * Result of `reveal`; `undefined` without it, and for a key that only other processes counted or
   * that has more than 64 characters.
   */
  readonly name: string | undefined
  /** Never below the true count. */
  readonly count: number
  /** Upper bound of the count's error. */
  readonly error: number
}

/** The processes that an answer knows of. */
interface Scope {
  /**
   * `fleet`: with what the other processes told within the last seconds. `process`: this process
   * alone, since its store has no fleet or is out of reach.
   */
  readonly scope: 'process' | 'fleet'
  /** Number of processes in the answer. */
  readonly processes: number
}

/** The keys with the highest counts. */
export interface TopKeysAnswer extends Scope {
  /** The highest count first. */
  readonly keys: readonly TopKey[]
  /** The most that a key outside the list may have been counted. */
  readonly floor: number
  /** All counts together, exactly. */
  readonly total: number
  /** From when on it was counted, in milliseconds since 1970. */
  readonly sinceMs: number
}

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
  /** Has each further value of a histogram told to somebody who keeps a histogram too. */
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
  /** Ends the exchange with other processes. All else goes on. */
  close(): void
}

/**
 * Makes the metrics of a process. They are bounded, and no identity is a label.
 * @example
 * const metrics = collectMetrics({ store })
 * app.use('/metrics', mount(metricsPage(metrics)))
 * app.use(rateLimit({ limit: 100, window: '1m', store, observers: [metrics] }))
 * @throws SluiceError when an option is unknown or of another form
 */
export function collectMetrics(options: MetricsOptions = {}): Metrics {
  noteRelease('@sluice/metrics')
  knownFields(options, 'collectMetrics', ['store', 'reveal'])
  const { store = {}, reveal } = options
  if (typeof store !== 'object' || store === null) {
    throw invalid({ option: 'store' }, store, 'a store, such as redisStore(client)')
  }
  if (reveal !== undefined && typeof reveal !== 'function') {
    throw invalid({ option: 'reveal' }, reveal, 'a function of the identity')
  }
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
  const answerers = new Map<string, number>()

  let latestName: string | undefined
  let latestSlot = 0

  function answererSlot(name: string): number {
    if (name === latestName) return latestSlot
    const slot = answerers.get(name) ?? decisionSeconds.slot(name)
    // Names come from stores that users write.
    if (answerers.size < 100) answerers.set(name, slot)
    latestName = name
    latestSlot = slot
    return slot
  }

  function countRequest({ decision, route, method, isQueued }: CountedDecision): void {
    const result = requestResult(decision, isQueued)
    const shadows = decision.shadow?.decisions
    if (result !== 'allowed' || shadows === undefined) {
      requests.add(route, method, result)
    } else if (isPromise(shadows)) {
      void shadows.then((known) => requests.add(route, method, shadowResult(known)))
    } else requests.add(route, method, shadowResult(shadows))
  }

  function countDecision(event: CountedDecision): void {
    const { decision, route, method, durationMs, answeredBy } = event
    decisionSeconds.observe(answererSlot(answeredBy), durationMs / 1_000)
    if (isPlainPass(event)) {
      requests.add(route, method, 'allowed')
      policies.decided(event, 'allowed')
      return
    }
    countRequest(event)
    policies.decided(event)
    const { policy } = event
    if (!decision.allowed && policy) policies.denied(policy, requests.labelOf(route))
  }

  function snapshot(): readonly Family[] {
    batch.countAll()
    stores.read()
    policies.readDescriptions()
    policies.readShares()
    return table.read()
  }

  function scopeNow(): Scope {
    const { others } = fleet
    return { scope: others === undefined ? 'process' : 'fleet', processes: 1 + (others ?? 0) }
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
    onWaited: ({ reason, waitedMs }) => work.noteWait(reason, waitedMs),
    onGiveUp: ({ reason }) => work.noteGiveUp(reason),
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

    fleetSnapshot: () => ({ ...scopeNow(), families: fleetCounts.read() }),

    topKeys(asked) {
      knownFields(asked, 'topKeys', ['policy', 'by', 'window', 'most'])
      const by = oneOf(asked.by ?? 'asked', { option: 'by' }, topKeysBys)
      const window = oneOf(asked.window ?? '1m', { option: 'window' }, topKeysWindows)
      const most = wholeNumber(asked.most ?? 10, { option: 'most' }, { min: 1, max: 100 })
      const keys = new Map<string, string>()
      batch.countAll()
      const own = policies.ranking(
        asked.policy,
        { by, window },
        {
          most: keptCounters,
          reveal: reveal && ((digest, key) => keys.set(digest, key)),
        },
      )
      const others = fleet.others === undefined ? [] : fleetKeys.reported(asked.policy, by, window)
      const parts = own ? [own, ...others] : others
      if (parts.length === 0) return undefined
      const found = mergedRanking(parts, most)
      const named = found.keys.map(({ key: digest, count, error }) => {
        const key = keys.get(digest)
        return { digest, name: key === undefined ? undefined : reveal?.(key), count, error }
      })
      return { ...found, ...scopeNow(), keys: named }
    },
  }
}

/**
 * Tells whether the store let a request pass, and no policy in shadow had a say. Nearly all are
 * such, and less has to be looked at.
 */
function isPlainPass({ decision, isQueued }: CountedDecision): boolean {
  const { allowed, source, shadow } = decision
  return allowed && source === 'store' && shadow === undefined && !isQueued
}

function shadowResult(
  decisions: readonly { readonly allowed: boolean }[],
): 'shadow_denied' | 'allowed' {
  return decisions.some(({ allowed }) => !allowed) ? 'shadow_denied' : 'allowed'
}
