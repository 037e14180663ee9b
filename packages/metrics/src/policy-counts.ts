import {
  type Check,
  type Decision,
  type DecisionEvent,
  digestOf,
  type LimiterEvent,
  type Outcome,
  type Policy,
  type Store,
} from '@sluice/core'
import { algorithmOf, usageOf } from '@sluice/core/backend'
import { unscopedKey } from '@sluice/http'
import { PolicyDescriptions } from './policy-descriptions.ts'
import type { Series, SeriesTable } from './series.ts'
import { type Ranking, TopKeys, type TopKeysBy, type TopKeysWindow } from './top-keys.ts'

/** Maximum number of policies whose keys are tracked. */
const maxFollowed = 100
/** Maximum number of policies counted separately; a metric has no more series. */
const maxPolicies = 2_000
/** Of longer identities the sketches keep only the digest: each holds up to 1,000. */
const longestKept = 64
/** Prefix of the digest of a long key in a sketch. */
const digested = '\u0000'
const digestedCode = 0

/** The counts of one policy, with the slots of its series. */
interface PolicyCount {
  readonly label: string
  readonly isPenalty: boolean
  /** True if it holds a number other than its limit. */
  readonly isBucket: boolean
  /** Slots of `checks` by result; -1 if not known yet. */
  readonly results: Int32Array
  /** Usually the next check has this result too. */
  latestResult: CheckResult | undefined
  latestSlot: number
  /** Slots of `denials` by route. */
  readonly denials: Map<string, number>
  /** `undefined` for a penalty: its strikes say nothing about near misses. */
  readonly usedRatio: number | undefined
  readonly topKeys: TopKeys | undefined
}

const checkResults = [
  'allowed',
  'denied',
  'unreached',
  'fallback_allowed',
  'fallback_denied',
  'shadow_allowed',
  'shadow_denied',
] as const

type CheckResult = (typeof checkResults)[number]

/** Counts the results of policies. */
export class PolicyCounts {
  readonly #table: SeriesTable
  readonly #checks: Series
  readonly #denials: Series
  readonly #usedRatio: Series
  /** By policy, so that its label is built once. */
  readonly #counts = new WeakMap<Policy, PolicyCount>()
  readonly #byLabel = new Map<string, PolicyCount>()
  readonly #store: Pick<Store, 'keys'>
  readonly #descriptions: PolicyDescriptions
  /** By position: a limiter usually checks the same policies in the same order. */
  readonly #latest: { readonly policy: Policy; readonly count: PolicyCount }[] = []
  #followed = 0

  constructor(table: SeriesTable, store: Pick<Store, 'keys'>) {
    this.#table = table
    this.#store = store
    this.#checks = table.of('sluice_checks_total')
    this.#denials = table.of('sluice_denials_total')
    this.#usedRatio = table.of('sluice_used_ratio')
    this.#descriptions = new PolicyDescriptions(table)
  }

  /** Shows a policy before its first request. */
  introduce(policy: Policy, { version, region }: Partial<LimiterEvent> = {}): void {
    const { label } = this.#counts.get(policy) ?? this.#meet(policy)
    if (this.#byLabel.has(label)) this.#descriptions.add(label, { policy, version, region })
  }

  /**
   * Counts the enforced checks of a request.
   * @param result of all checks, if known @default by the outcome of each
   */
  decided(event: Pick<DecisionEvent, 'decision' | 'checks' | 'atMs'>, result?: 'allowed'): void {
    const { decision, checks, atMs = performance.now() } = event
    const { outcomes, allowed } = decision
    for (let i = 0; i < checks.length; i += 1) {
      const check = checks[i]
      const outcome = outcomes[i]
      if (check === undefined || outcome === undefined) continue
      const count = this.#countOf(check.policy, i)
      this.#checks.add(this.#resultSlot(count, result ?? checkResult(outcome, decision)))
      count.topKeys?.note(this.#kept(check), !outcome.allowed, atMs)
      if (allowed) this.#noteUse(count, outcome)
    }
  }

  /** Counts a denied request for the policy that denies for the longest. */
  denied(policy: Policy, route: string): void {
    const count = this.#countOf(policy)
    const known = count.denials.get(route)
    const slot = known ?? this.#denials.slot(count.label, route)
    if (known === undefined) count.denials.set(route, slot)
    this.#denials.add(slot)
    if (count.isPenalty) this.#table.add('sluice_penalties_total', 1, count.label)
  }

  /** Counts what shadow policies would have done. */
  shadowed(outcomes: readonly Outcome[], checks: readonly Check[]): void {
    for (const [index, { policy, allowed }] of outcomes.entries()) {
      const count = this.#countOf(policy)
      this.#checks.add(this.#resultSlot(count, allowed ? 'shadow_allowed' : 'shadow_denied'))
      const check = checks[index]
      if (check) count.topKeys?.note(this.#kept(check), !allowed, performance.now())
    }
  }

  /**
   * Returns a policy's busiest keys as digests; `undefined` if they are not tracked.
   * @param known receives the keys by digest, as far as they are kept
   */
  ranking(
    label: string,
    order: { readonly by: TopKeysBy; readonly window: TopKeysWindow; readonly most: number },
    known?: Map<string, string>,
  ): Ranking | undefined {
    const found = this.#byLabel.get(label)?.topKeys?.top(order.by, order.window, order.most)
    if (!found) return undefined
    const keys = found.keys.map(({ key: kept, count, error }) => {
      const isDigest = kept.startsWith(digested)
      const digest = isDigest ? kept.slice(digested.length) : digestOf(kept, this.#store)
      if (!isDigest) known?.set(digest, unscopedKey(kept))
      return { key: digest, count, error }
    })
    return { ...found, keys }
  }

  /** The labels of the policies whose keys are tracked. */
  get followed(): readonly string[] {
    return [...this.#byLabel].filter(([, { topKeys }]) => topKeys).map(([label]) => label)
  }

  /** Returns the counts by which a policy's keys are ranked separately. */
  countsOf(label: string): readonly TopKeysBy[] {
    return this.#byLabel.get(label)?.topKeys?.counts ?? []
  }

  /**
   * Updates the gauges of current policies, and the busiest identity's share; a penalty has none.
   */
  read(): void {
    this.#descriptions.read()
    for (const [label, { topKeys, isPenalty }] of this.#byLabel) {
      const isShown = topKeys && !isPenalty
      if (isShown) this.#table.set('sluice_hot_key_share', topKeys.hottestShare, label)
    }
  }

  /** Returns a check in the form that its sketch counts. */
  #kept(check: Check): Pick<Check, 'key' | 'cost'> {
    const { key, identity = key, cost } = check
    if (identity.length <= longestKept && key.charCodeAt(0) !== digestedCode) return check
    return { key: digested + digestOf(key, this.#store), cost }
  }

  #noteUse({ usedRatio, isBucket }: PolicyCount, outcome: Outcome): void {
    const { limit, remaining } = outcome
    if (usedRatio === undefined || remaining === undefined) return
    if (limit === 0 || limit === Number.POSITIVE_INFINITY) return
    const usage = isBucket ? usageOf(outcome) : { used: limit - remaining, capacity: limit }
    if (usage.used !== undefined) this.#usedRatio.observe(usedRatio, usage.used / usage.capacity)
  }

  #resultSlot(count: PolicyCount, result: CheckResult): number {
    if (result === count.latestResult) return count.latestSlot
    const place = checkResults.indexOf(result)
    const known = count.results[place] ?? -1
    const slot = known === -1 ? this.#checks.slot(count.label, result) : known
    count.results[place] = slot
    count.latestResult = result
    count.latestSlot = slot
    return slot
  }

  /** @param place index of the check in its list */
  #countOf(policy: Policy, place = 0): PolicyCount {
    const latest = this.#latest[place]
    if (latest?.policy === policy) return latest.count
    const known = this.#counts.get(policy)
    const count = known ?? this.#meet(policy)
    // If the metrics do not observe the policy's limiter, nobody has announced it.
    const isNew = !known && policy.limit !== Number.POSITIVE_INFINITY
    if (isNew && !this.#descriptions.has(count.label)) this.introduce(policy)
    this.#latest[place] = { policy, count }
    return count
  }

  #meet(policy: Policy): PolicyCount {
    const label = labelOf(policy)
    const count = this.#byLabel.get(label) ?? this.#begin(policy, label)
    this.#counts.set(policy, count)
    return count
  }

  #begin(policy: Policy, label: string): PolicyCount {
    const isFollowed = this.#followed < maxFollowed
    if (isFollowed) this.#followed += 1
    const { counts, capacityLevel } = algorithmOf(policy)
    const isPenalty = counts === 'strikes'
    const count: PolicyCount = {
      label,
      isPenalty,
      isBucket: capacityLevel !== undefined,
      results: new Int32Array(checkResults.length).fill(-1),
      latestResult: undefined,
      latestSlot: 0,
      denials: new Map<string, number>(),
      usedRatio: isPenalty ? undefined : this.#usedRatio.slot(label),
      topKeys: isFollowed ? new TopKeys() : undefined,
    }
    if (this.#byLabel.size < maxPolicies) this.#byLabel.set(label, count)
    // Prometheus sees an increase only if it has seen the series before.
    this.#resultSlot(count, policy.enforcedShare === 0 ? 'shadow_denied' : 'denied')
    if (isPenalty) this.#table.add('sluice_penalties_total', 0, label)
    return count
  }
}

/** Returns the label of a policy. An unnamed policy is labelled by its limit and window. */
export function labelOf({ named, name, limit, windowMs }: Policy): string {
  return named ? name : `${name}-${limit}-${windowMs / 1_000}s`
}

function checkResult(outcome: Outcome, decision: Decision): CheckResult {
  if (decision.source === 'fallback')
    return outcome.allowed ? 'fallback_allowed' : 'fallback_denied'
  if (!outcome.allowed) return 'denied'
  // If a denial is cached or comes from one shard, the others are not checked.
  return outcome.remaining === undefined && !decision.allowed ? 'unreached' : 'allowed'
}
