import {
  choiceOption,
  countOption,
  mergeHotKeys,
  type Option,
  type OptionsOf,
  type RequiredOption,
  readOptions,
  sleep,
} from '@sluice/core'
import type { DecisionBatch } from './decision-batch.ts'
import {
  type FleetSubject,
  type Heard,
  isNumber,
  list,
  rowsWithin,
  type Scope,
} from './fleet-exchange.ts'
import type { PolicyCounts } from './policy-counts.ts'
import {
  keptCounters,
  type Ranking,
  type TopKeysBy,
  type TopKeysWindow,
  topKeysBys,
  topKeysWindows,
} from './top-keys.ts'

/** The options of `topKeys`. */
class TopKeysTable {
  /** Label of the policy, as in the metrics. */
  policy: RequiredOption<string> = (policy) => policy
  /** Count by which the keys are ranked. @default 'asked' */
  by?: Option<TopKeysBy, TopKeysBy> = choiceOption('asked', topKeysBys)
  /** Time that the ranking covers. @default '1m' */
  window?: Option<TopKeysWindow, TopKeysWindow> = choiceOption('1m', topKeysWindows)
  /** Number of keys: 1 to 100. @default 10 */
  most?: Option<number, number> = countOption(10, { min: 1, max: 100 })
}

/** Options of `topKeys`. */
export interface TopKeysOptions extends OptionsOf<TopKeysTable> {}

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

/** The keys with the highest counts. */
export interface TopKeysAnswer extends Scope {
  /** Highest count first. */
  readonly keys: readonly TopKey[]
  /** Upper bound on the count of any key outside the list. */
  readonly floor: number
  /** The exact sum of all counts. */
  readonly total: number
  /** Start of the counting, in milliseconds since 1970. */
  readonly sinceMs: number
}

interface Reported extends Ranking {
  readonly label: string
  readonly by: TopKeysBy
  readonly window: TopKeysWindow
}

/** Maximum characters for the keys of one process, and of all processes of a fleet together. */
const maxReport = 32_768
const maxReports = 524_288
/** A digest, its count and its error, as text. */
const charactersOfKey = 45
const keysOfRanking = { min: 5, max: 100 } as const

/** Exchanges the busiest keys with the other processes of a fleet. */
export class FleetKeys implements FleetSubject {
  readonly #policies: PolicyCounts
  readonly #batch: DecisionBatch
  #others: readonly (readonly Reported[])[] = []

  /** @param batch decisions that the policies have not counted yet */
  constructor(policies: PolicyCounts, batch: DecisionBatch) {
    this.#policies = policies
    this.#batch = batch
  }

  hear(heard: readonly Heard[]): void {
    this.#others = heard.map(({ part }) => decoded(part))
  }

  /**
   * Returns the busiest keys of a policy, in the processes of a scope.
   * @param reveal names a key that this process has counted
   */
  answer(
    asked: TopKeysOptions,
    scope: Scope,
    reveal: ((key: string) => string | undefined) | undefined,
  ): TopKeysAnswer | undefined {
    const { policy, by, window, most } = readOptions(new TopKeysTable(), asked, 'topKeys')
    this.#batch.countAll()
    const keys = new Map<string, string>()
    const own = this.#policies.ranking(policy, { by, window, most: keptCounters }, keys) ?? []
    const others = scope.scope === 'fleet' ? this.#reported(policy, by, window) : []
    const parts = [own, others].flat()
    if (parts.length === 0) return undefined
    const found = mergeHotKeys(parts, most)
    const named = found.keys.map(({ key: digest, count, error }) => {
      const key = keys.get(digest)
      return { digest, name: key === undefined ? undefined : reveal?.(key), count, error }
    })
    const sinceMs = Math.min(...parts.map((part) => part.sinceMs))
    return { ...found, sinceMs, ...scope, keys: named }
  }

  /** Rankings of the other processes. A process whose requests all cost 1 does not report costs. */
  #reported(label: string, by: TopKeysBy, window: TopKeysWindow): readonly Ranking[] {
    return this.#others.flatMap((report) => {
      const found = report.filter((each) => each.label === label && each.window === window)
      const same = found.find((each) => each.by === by)
      return same ?? found.find((each) => by === 'cost' && each.by === 'asked') ?? []
    })
  }

  /** The rankings of the busiest policies, as far as they fit. */
  async report(instances: number): Promise<readonly unknown[]> {
    const rankings: (readonly Reported[])[] = []
    this.#batch.countAll()
    for (const label of this.#policies.followed) {
      rankings.push(this.#rankingsOf(label))
      // Sorting the keys of many policies at once would block requests.
      await sleep(0)
    }
    const count = rankings.flat().length
    const room = Math.min(maxReport, maxReports / instances)
    const { min, max } = keysOfRanking
    const keys = Math.max(min, Math.min(max, Math.floor(room / charactersOfKey / count)))
    const busiestFirst = rankings.sort((one, other) => totalOf(other) - totalOf(one)).flat()
    return rowsWithin(
      room,
      busiestFirst.map((ranking) => encodedRanking(ranking, keys)),
    )
  }

  #rankingsOf(label: string): readonly Reported[] {
    const most = keysOfRanking.max
    return this.#policies.countsOf(label).flatMap((by) =>
      topKeysWindows.flatMap((window) => {
        const ranking = this.#policies.ranking(label, { by, window, most })
        return ranking && ranking.total > 0 ? [{ label, by, window, ...ranking }] : []
      }),
    )
  }
}

function totalOf(rankings: readonly Reported[]): number {
  return Math.max(0, ...rankings.map(({ total }) => total))
}

function encodedRanking({ label, by, window, ...ranking }: Reported, most: number) {
  const { keys, total, sinceMs } = ranking
  const floor = keys[most]?.count ?? ranking.floor
  const listed = keys.slice(0, most).map(({ key, count, error }) => [key, count, error])
  return [label, by, window, floor, total, sinceMs, listed] as const
}

/** Skips unreadable parts: a process of another version may have written them. */
function decoded(part: unknown): readonly Reported[] {
  return list(part).flatMap((row) => {
    const [label, by, window, floor, total, sinceMs, listed] = list(row)
    const isKnown = typeof label === 'string' && isNumber(floor) && isNumber(total)
    if (!isKnown || !isNumber(sinceMs)) return []
    const ofBy = topKeysBys.find((name) => name === by)
    const ofWindow = topKeysWindows.find((name) => name === window)
    if (!ofBy || !ofWindow) return []
    const keys = list(listed).flatMap((each) => {
      const [key, count, error] = list(each)
      return typeof key === 'string' && isNumber(count) && isNumber(error)
        ? [{ key, count, error }]
        : []
    })
    return [{ label, by: ofBy, window: ofWindow, keys, floor, total, sinceMs }]
  })
}
