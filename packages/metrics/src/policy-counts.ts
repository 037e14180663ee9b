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

/** The most policies whose keys are followed one by one. */
const maxFollowed = 100
/** The most policies that are counted apart; a metric has no more series. */
const maxPolicies = 2_000
/** Of longer identities the sketches keep the digest alone: there are up to 1,000 in each. */
const longestKept = 64
/** Prefix of the digest of a long key in a sketch. */
const digested = '\u0000'
const digestedCode = 0

/** The counts of one policy, with the slots of its series. */
interface PolicyCount {
  readonly label: string
  readonly isPenalty: boolean
  /** True if what it holds is another number than its limit. */
  readonly isBucket: boolean
  /** Slots of `checks` by result; -1 for those that are not known yet. */
  readonly results: Int32Array
  /** Mostly the next check has this result too. */
  latestResult: CheckResult | undefined
  latestSlot: number
  /** Slots of `denials` by route. */
  readonly denials: Map<string, number>
  /** `undefined` for a penalty: its strikes say nothing of near misses. */
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

/** Counts what policies come to. */
export class PolicyCounts {
  readonly #table: SeriesTable
  readonly #checks: Series
  readonly #denials: Series
  readonly #usedRatio: Series
  /** By the policy itself, so that its label is put together once. */
  readonly #counts = new WeakMap<Policy, PolicyCount>()
  readonly #byLabel = new Map<string, PolicyCount>()
  readonly #store: Pick<Store, 'keys'>
  readonly #descriptions: PolicyDescriptions
  /** By place: a limiter mostly asks the same policies in the same order. */
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

  /** Shows a policy although no request has met it. */
  introduce(policy: Policy, { version, region }: Partial<LimiterEvent> = {}): void {
    const { label } = this.#counts.get(policy) ?? this.#meet(policy)
    if (this.#byLabel.has(label)) this.#descriptions.add(label, { policy, version, region })
  }

  /**
   * Counts the checks of a request that were enforced.
   * @param result of all checks, where it is known @default by the outcome of each
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

  /** Counts what the policies in shadow would have done. */
  shadowed(outcomes: readonly Outcome[], checks: readonly Check[]): void {
    for (const [index, { policy, allowed }] of outcomes.entries()) {
      const count = this.#countOf(policy)
      this.#checks.add(this.#resultSlot(count, allowed ? 'shadow_allowed' : 'shadow_denied'))
      const check = checks[index]
      if (check) count.topKeys?.note(this.#kept(check), !allowed, performance.now())
    }
  }

  /**
   * The busiest keys of a policy as digests; `undefined` where they are not followed.
   * @param known gets the keys by their digests, as far as they are kept
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

  /** The labels of the policies whose keys are followed. */
  get followed(): readonly string[] {
    return [...this.#byLabel].filter(([, { topKeys }]) => topKeys).map(([label]) => label)
  }

  /** The counts by which the keys of a policy have orders of their own. */
  countsOf(label: string): readonly TopKeysBy[] {
    return this.#byLabel.get(label)?.topKeys?.counts ?? []
  }

  /** Shows the policies in force, and the share of the busiest identity; a penalty has none. */
  read(): void {
    this.#descriptions.read()
    for (const [label, { topKeys, isPenalty }] of this.#byLabel) {
      const isShown = topKeys && !isPenalty
      if (isShown) this.#table.set('sluice_hot_key_share', topKeys.hottestShare, label)
    }
  }

  /** The check as its sketch counts it. */
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

  /** @param place of the check in its list */
  #countOf(policy: Policy, place = 0): PolicyCount {
    const latest = this.#latest[place]
    if (latest?.policy === policy) return latest.count
    const known = this.#counts.get(policy)
    const count = known ?? this.#meet(policy)
    // The metrics may not observe the limiter of the policy, so that nobody has announced it.
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
    // Prometheus sees an increase of a series only when it has seen the series before.
    this.#resultSlot(count, policy.enforcedShare === 0 ? 'shadow_denied' : 'denied')
    if (isPenalty) this.#table.add('sluice_penalties_total', 0, label)
    return count
  }
}

/** The label of a policy. One without a name is called by its shape: two are counted apart. */
export function labelOf({ named, name, limit, windowMs }: Policy): string {
  return named ? name : `${name}-${limit}-${windowMs / 1_000}s`
}

function checkResult(outcome: Outcome, decision: Decision): CheckResult {
  if (decision.source === 'fallback')
    return outcome.allowed ? 'fallback_allowed' : 'fallback_denied'
  if (!outcome.allowed) return 'denied'
  // A denial that is remembered, or made in one shard, keeps the others from being asked.
  return outcome.remaining === undefined && !decision.allowed ? 'unreached' : 'allowed'
}
