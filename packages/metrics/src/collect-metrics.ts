import {
  type DecisionEvent,
  invalid,
  isPromise,
  knownFields,
  type LimiterEvent,
  oneOf,
  type ResilienceEvent,
  type ShadowEvent,
  type SkipEvent,
  type StoreCall,
  type StoreHealth,
  wholeNumber,
} from '@sluice/core'
import { FleetKeys, type FleetStore, mergedRanking } from './fleet-keys.ts'
import type { InstrumentName } from './instruments.ts'
import { PolicyCounts } from './policies.ts'
import { RequestCounts, resultOf } from './requests.ts'
import { type Family, SeriesTable, type Tap } from './series.ts'
import {
  keptCounters,
  type TopKeysBy,
  type TopKeysWindow,
  topKeysBys,
  topKeysWindows,
} from './top-keys.ts'
import { type WatchedOutbound, type WatchedQueue, WorkCounts, type WorkEvent } from './work.ts'

export interface MetricsOptions {
  /**
   * The store of the limiters: digests of keys agree with its own, and the busiest keys are merged over its fleet every few seconds.
   * @default none: this process alone, and digests without a secret
   */
  store?: FleetStore
  /** Names an identity among the top keys, such as a customer. @default nothing but its digest */
  reveal?: (key: string) => string | undefined
}

export interface TopKeysOptions {
  /** The label of the policy, as in the metrics. */
  policy: string
  /** @default 'asked' */
  by?: TopKeysBy
  /** @default '1m' */
  window?: TopKeysWindow
  /** Number of keys: 1 to 100. @default 10 */
  most?: number
}

export interface TopKey {
  readonly digest: string
  /** Result of `reveal`; `undefined` without it, and for a key that only other processes counted or that has more than 64 characters. */
  readonly name: string | undefined
  /** Never below the true count. */
  readonly count: number
  /** Upper bound of the count's error. */
  readonly error: number
}

export interface TopKeysAnswer {
  /**
   * `fleet`: with what the other processes told within the last seconds. `process`: this process alone, since its store has no fleet or
   * is out of reach.
   */
  readonly scope: 'process' | 'fleet'
  /** Number of processes in the answer. */
  readonly processes: number
  /** The highest count first. */
  readonly keys: readonly TopKey[]
  /** The most that a key outside the list may have been counted. */
  readonly floor: number
  /** All counts together, exactly. */
  readonly total: number
  /** From when on it was counted, in milliseconds since 1970. */
  readonly sinceMs: number
}

/** Counts what limiters, queues, outbounds and clients tell. It is an observer: put it into their option `observers`. */
export interface Metrics {
  /** The busiest keys of one policy. `undefined` for a policy that is not known. */
  topKeys(options: TopKeysOptions): TopKeysAnswer | undefined
  /** All metrics as they stand. Queues are asked how full they are. */
  read(): Promise<readonly Family[]>
  /** All metrics as they stand, without asking queues: their gauges are those of the last `read`. */
  snapshot(): readonly Family[]
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
  /** Ends the exchange of the busiest keys with other processes. All else goes on. */
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
  const fleet = new FleetKeys(policies, store)
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

  function countRequest({ decision, route, method, isQueued }: DecisionEvent): void {
    const result = resultOf(decision, isQueued)
    const shadows = decision.shadow?.decisions
    if (result !== 'allowed' || shadows === undefined) {
      requests.add(route, method, result)
    } else if (isPromise(shadows)) {
      void shadows.then((known) => requests.add(route, method, shadowResult(known)))
    } else requests.add(route, method, shadowResult(shadows))
  }

  function snapshot(): readonly Family[] {
    stores.read()
    policies.readDescriptions()
    policies.readShares()
    return table.read()
  }

  return {
    onDecision(event) {
      countRequest(event)
      const { decision, policy, durationMs, answeredBy } = event
      policies.decided(event)
      decisionSeconds.observe(answererSlot(answeredBy), durationMs / 1_000)
      if (!decision.allowed && policy) policies.denied(policy, requests.labelOf(event.route))
    },
    onShadow: ({ outcomes, checks }) => policies.shadowed(outcomes, checks),
    onSkip: ({ route, method }) => requests.add(route, method, 'skipped'),
    onResilience: (event) => stores.note(event),
    onStoreCall: (call) => stores.noteCall(call),
    onLimiter(limiter) {
      stores.watch(limiter)
      for (const policy of limiter.policies) {
        if (policy.limit !== Number.POSITIVE_INFINITY) policies.introduce(policy, limiter.version)
      }
    },
    onEvent: (event) => work.note(event),
    onQueue: (queue) => work.watchQueue(queue),
    onOutbound: (outbound) => work.watchOutbound(outbound),
    onWaited: ({ reason, waitedMs }) => work.noteWait(reason, waitedMs),
    onGiveUp: ({ reason }) => work.noteGiveUp(reason),
    close: () => fleet.close(),

    tap: (name, tap) => table.of(name).tap(tap),

    async read() {
      await work.read()
      return snapshot()
    },

    snapshot,

    topKeys(asked) {
      knownFields(asked, 'topKeys', ['policy', 'by', 'window', 'most'])
      const by = oneOf(asked.by ?? 'asked', { option: 'by' }, topKeysBys)
      const window = oneOf(asked.window ?? '1m', { option: 'window' }, topKeysWindows)
      const most = wholeNumber(asked.most ?? 10, { option: 'most' }, { min: 1, max: 100 })
      const keys = new Map<string, string>()
      const own = policies.ranking(
        asked.policy,
        { by, window },
        {
          most: keptCounters,
          reveal: reveal && ((digest, key) => keys.set(digest, key)),
        },
      )
      const others = fleet.reported(asked.policy, by, window)
      const parts = own ? [own, ...others] : others
      if (parts.length === 0) return undefined
      const found = mergedRanking(parts, most)
      const scope = fleet.others === undefined ? 'process' : 'fleet'
      const named = found.keys.map(({ key: digest, count, error }) => {
        const key = keys.get(digest)
        return { digest, name: key === undefined ? undefined : reveal?.(key), count, error }
      })
      return { ...found, scope, processes: 1 + (fleet.others ?? 0), keys: named }
    },
  }
}

function shadowResult(
  decisions: readonly { readonly allowed: boolean }[],
): 'shadow_denied' | 'allowed' {
  return decisions.some(({ allowed }) => !allowed) ? 'shadow_denied' : 'allowed'
}

/** Readings of the stores. If a process has several, the worst of them counts. */
class StoreReadings {
  readonly #table: SeriesTable
  readonly #spaces = new Set<WeakRef<object>>()
  /** Held by its space alone, so that the store of a limiter that nobody uses is let go. */
  readonly #health = new WeakMap<object, () => StoreHealth>()
  #reconciled = 0
  #missed = 0

  constructor(table: SeriesTable) {
    this.#table = table
  }

  watch({ space, storeHealth }: LimiterEvent): void {
    if (!this.#health.has(space)) this.#spaces.add(new WeakRef(space))
    this.#health.set(space, storeHealth)
  }

  note(event: ResilienceEvent): void {
    if (event.type === 'deadline-missed') this.#missed += event.checks
    if (event.type === 'reconciled') this.#reconciled += event.units
  }

  noteCall({ durationMs, checks, failed }: StoreCall): void {
    const [seconds, sizes] = [
      this.#table.of('sluice_store_call_seconds'),
      this.#table.of('sluice_store_call_checks'),
    ]
    seconds.observe(seconds.slot(), durationMs / 1_000)
    sizes.observe(sizes.slot(), checks)
    const failures = this.#table.of('sluice_store_call_failures_total')
    failures.add(failures.slot(), failed ? 1 : 0)
  }

  read(): void {
    const all = this.#healthOfAll()
    const states = all.map(({ breaker }) => ['closed', 'half-open', 'open'].indexOf(breaker))
    this.#set('sluice_breaker_state', Math.max(0, ...states))
    this.#set('sluice_fallback_active', all.some(({ isAway }) => isAway) ? 1 : 0)
    this.#set(
      'sluice_keys_owed',
      all.reduce((sum, { keysOwed }) => sum + keysOwed, 0),
    )
    this.#set('sluice_fleet_instances', Math.max(1, ...all.map(({ instances }) => instances)))
    const skews = all
      .map(({ clockSkewMs }) => clockSkewMs)
      .sort((a, b) => Math.abs(b) - Math.abs(a))
    this.#set('sluice_clock_skew_seconds', (skews[0] ?? 0) / 1_000)
    this.#set('sluice_deadlines_missed_total', this.#missed)
    this.#set('sluice_reconciled_units_total', this.#reconciled)
  }

  #healthOfAll(): readonly StoreHealth[] {
    const all: StoreHealth[] = []
    for (const ref of this.#spaces) {
      const space = ref.deref()
      const health = space && this.#health.get(space)
      if (health) all.push(health())
      else this.#spaces.delete(ref)
    }
    return all
  }

  #set(name: InstrumentName, value: number): void {
    const series = this.#table.of(name)
    series.set(series.slot(), value)
  }
}
