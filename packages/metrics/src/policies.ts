import {
  type Check,
  type Decision,
  digestOf,
  type Outcome,
  type Policy,
  type Store,
} from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'
import { unscopedKey } from '@sluice/http'
import type { Series, SeriesTable } from './series.ts'
import { type Ranking, TopKeys, type TopKeysBy, type TopKeysWindow } from './top-keys.ts'

/** The most policies whose keys are followed one by one. */
const maxFollowed = 100
/** The most policies that are told apart; a metric has no more series. */
const maxPolicies = 2_000
/** Of longer identities the sketches keep the digest alone: there are up to 1,000 in each. */
const longestKept = 64
/** Prefix of the digest of a long key in a sketch. */
const digested = '\u0000'

interface RankingOptions {
  readonly most: number
  readonly reveal?: ((digest: string, key: string) => void) | undefined
}

/** The counts of one policy, with the slots of its series. */
interface PolicyCount {
  readonly label: string
  readonly isPenalty: boolean
  /** Slots of `checks` by result. */
  readonly results: Partial<Record<CheckResult, number>>
  /** Slots of `denials` by route. */
  readonly denials: Map<string, number>
  /** `undefined` for a penalty: its strikes say nothing of near misses. */
  readonly usedRatio: number | undefined
  readonly topKeys: TopKeys | undefined
}

type CheckResult =
  | 'allowed'
  | 'denied'
  | 'unreached'
  | 'fallback_allowed'
  | 'fallback_denied'
  | 'shadow_allowed'
  | 'shadow_denied'

/** Counts what policies come to. */
export class PolicyCounts {
  readonly #table: SeriesTable
  readonly #checks: Series
  readonly #denials: Series
  readonly #usedRatio: Series
  /** By the policy itself, so that its label is put together once. */
  readonly #counts = new WeakMap<Policy, PolicyCount>()
  readonly #byLabel = new Map<string, PolicyCount>()
  readonly #store: Pick<Store, 'digestOf'>
  #followed = 0
  /** Mostly there is one. */
  #latest: { readonly policy: Policy; readonly count: PolicyCount } | undefined

  constructor(table: SeriesTable, store: Pick<Store, 'digestOf'>) {
    this.#table = table
    this.#store = store
    this.#checks = table.of('sluice_checks_total')
    this.#denials = table.of('sluice_denials_total')
    this.#usedRatio = table.of('sluice_used_ratio')
  }

  /** Shows a policy although no request has met it. */
  introduce(policy: Policy): void {
    this.#countOf(policy)
  }

  /** Counts the checks of a request that were enforced. */
  decided(decision: Decision, checks: readonly Check[]): void {
    const isFallback = decision.source === 'fallback'
    for (let i = 0; i < checks.length; i += 1) {
      const check = checks[i]
      const outcome = decision.outcomes[i]
      if (check === undefined || outcome === undefined) continue
      const count = this.#countOf(check.policy)
      this.#checks.add(this.#resultSlot(count, resultOf(outcome, decision, isFallback)))
      count.topKeys?.note(this.#keptKey(check), check.cost, !outcome.allowed)
      if (decision.allowed) this.#noteUse(count, outcome)
    }
  }

  /** Counts a denied request for the policy that denies for the longest. */
  denied(policy: Policy, route: string): void {
    const count = this.#countOf(policy)
    const known = count.denials.get(route)
    const slot = known ?? this.#denials.slot(count.label, route)
    if (known === undefined) count.denials.set(route, slot)
    this.#denials.add(slot)
    if (!count.isPenalty) return
    const penalties = this.#table.of('sluice_penalties_total')
    penalties.add(penalties.slot(count.label))
  }

  /** Counts what the policies in shadow would have done. */
  shadowed(outcomes: readonly Outcome[], checks: readonly Check[]): void {
    for (const [index, { policy, allowed }] of outcomes.entries()) {
      const count = this.#countOf(policy)
      this.#checks.add(this.#resultSlot(count, allowed ? 'shadow_allowed' : 'shadow_denied'))
      const check = checks[index]
      if (check) count.topKeys?.note(this.#keptKey(check), check.cost, !allowed)
    }
  }

  /**
   * The busiest keys of a policy as digests; `undefined` where they are not followed.
   * @param reveal hears of each digest, and of the key as its resolver found it where that is kept
   */
  ranking(
    label: string,
    { by, window }: { readonly by: TopKeysBy; readonly window: TopKeysWindow },
    { most, reveal }: RankingOptions,
  ): Ranking | undefined {
    const topKeys = this.#byLabel.get(label)?.topKeys
    const found = topKeys?.top(by, window, most)
    if (!found) return undefined
    const keys = found.keys.map(({ key: kept, count, error }) => {
      const isDigest = kept.startsWith(digested)
      const digest = isDigest ? kept.slice(digested.length) : digestOf(kept, this.#store)
      if (!isDigest) reveal?.(digest, unscopedKey(kept))
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

  /** Reads how large the share of the busiest identity is. A penalty counts strikes, and has none. */
  readShares(): void {
    const shares = this.#table.of('sluice_hot_key_share')
    for (const [label, { topKeys, isPenalty }] of this.#byLabel) {
      if (topKeys && !isPenalty) shares.set(shares.slot(label), topKeys.hottestShare)
    }
  }

  #keptKey({ key, identity = key }: Check): string {
    if (identity.length <= longestKept && !key.startsWith(digested)) return key
    return digested + digestOf(key, this.#store)
  }

  #noteUse({ usedRatio }: PolicyCount, { limit, remaining }: Outcome): void {
    if (usedRatio === undefined || remaining === undefined) return
    if (limit === 0 || limit === Number.POSITIVE_INFINITY) return
    this.#usedRatio.observe(usedRatio, (limit - remaining) / limit)
  }

  #resultSlot(count: PolicyCount, result: CheckResult): number {
    const known = count.results[result]
    if (known !== undefined) return known
    const slot = this.#checks.slot(count.label, result)
    count.results[result] = slot
    return slot
  }

  #countOf(policy: Policy): PolicyCount {
    if (policy === this.#latest?.policy) return this.#latest.count
    const count = this.#counts.get(policy) ?? this.#meet(policy)
    this.#latest = { policy, count }
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
    const isPenalty = algorithmOf(policy).counts === 'strikes'
    const count = {
      label,
      isPenalty,
      results: {},
      denials: new Map<string, number>(),
      usedRatio: isPenalty ? undefined : this.#usedRatio.slot(label),
      topKeys: isFollowed ? new TopKeys() : undefined,
    }
    if (this.#byLabel.size < maxPolicies) this.#byLabel.set(label, count)
    this.#describe(policy, label)
    return count
  }

  #describe(policy: Policy, label: string): void {
    const { limit, windowMs, algorithm, enforcedShare } = policy
    const [limits, windows, infos] = [
      this.#table.of('sluice_policy_limit'),
      this.#table.of('sluice_policy_window_seconds'),
      this.#table.of('sluice_policy_info'),
    ]
    limits.set(limits.slot(label), limit)
    windows.set(windows.slot(label), windowMs / 1_000)
    const mode = enforcedShare === 0 ? 'shadow' : enforcedShare === 1 ? 'enforce' : 'canary'
    infos.set(infos.slot(label, mode, algorithm), 1)
  }
}

/** A policy without a name is called by its shape, so that two of them are told apart. */
function labelOf({ named, name, limit, windowMs }: Policy): string {
  return named ? name : `${name}-${limit}-${windowMs / 1_000}s`
}

function resultOf(outcome: Outcome, decision: Decision, isFallback: boolean): CheckResult {
  if (isFallback) return outcome.allowed ? 'fallback_allowed' : 'fallback_denied'
  if (!outcome.allowed) return 'denied'
  // Where counts are spread over shards, one that denies keeps the others from being asked.
  return outcome.remaining === undefined && !decision.allowed ? 'unreached' : 'allowed'
}
