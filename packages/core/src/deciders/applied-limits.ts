import type { Check } from '../model/check.ts'
import { digestOf } from '../model/digest.ts'
import type { Store } from '../model/store.ts'
import { processWide } from '../runtime/process-wide.ts'
import { monotonicMs } from '../waiting/timers.ts'

type CountingStore = Pick<Store, 'keys' | 'space'>
type Applied = readonly [limit: number, atMs: number]

/** A limit that one process reports to the others. `id` is the policy and the key's digest. */
export type AppliedLimit = readonly [id: string, limit: number, ageMs: number]

const maxKept = 4_000

/**
 * The limit of each key's last request, for policies whose limit comes with the request. Stores
 * other than memory keep only counts, and a count means nothing without its limit.
 */
export class AppliedLimits {
  readonly #store: CountingStore
  /** Oldest first. */
  readonly #own = new Map<string, Applied>()
  #reported: ReadonlyMap<string, Applied> = new Map()

  constructor(store: CountingStore) {
    this.#store = store
  }

  /** Records the limits of a request that neither the policy nor the store knows. */
  note(checks: readonly Check[]): void {
    for (const check of checks) {
      const { policy, limit } = check
      if (!policy.limitPerRequest) continue
      const isKnown = this.#store.keys?.limitOf ? Number.isFinite(limit) : limit === policy.limit
      if (isKnown && this.#own.size === 0) continue
      const id = this.#idOf(check)
      if (!this.#own.delete(id) && isKnown) continue
      this.#own.set(id, [limit, monotonicMs()])
      const [oldest = ''] = this.#own.keys()
      if (this.#own.size > maxKept) this.#own.delete(oldest)
    }
  }

  /** Returns the limit of a key's last request; `undefined` if it is unknown. */
  of(check: Pick<Check, 'policy' | 'key' | 'digest'>): number | undefined {
    const id = this.#idOf(check)
    const [own, reported] = [this.#own.get(id), this.#reported.get(id)]
    const [last] = own && reported && own[1] < reported[1] ? reported : (own ?? reported ?? [])
    return last ?? this.#store.keys?.limitOf?.(check)
  }

  /** Returns limits to report to the other processes, newest first. */
  newest(count: number): readonly AppliedLimit[] {
    const newest = [...this.#own].slice(-count).reverse()
    return newest.map(([id, [limit, atMs]]) => [id, limit, Math.round(monotonicMs() - atMs)])
  }

  /** Replaces the limits that the other processes have reported. */
  hear(limits: readonly AppliedLimit[]): void {
    const nowMs = monotonicMs()
    const oldestFirst = [...limits].sort(([, , one], [, , other]) => other - one)
    this.#reported = new Map(oldestFirst.map(([id, limit, ageMs]) => [id, [limit, nowMs - ageMs]]))
  }

  #idOf({ policy, key, digest }: Pick<Check, 'policy' | 'key' | 'digest'>): string {
    return `${policy.id} ${digest ?? digestOf(key, this.#store)}`
  }
}

const known = processWide(
  '@sluice/core/applied-limits/1',
  () => new WeakMap<object, AppliedLimits>(),
)

/** Returns the limits for all stores that count in one place. */
export function appliedLimitsOf(store: CountingStore): AppliedLimits {
  const space = store.space ?? store
  const limits = known.get(space) ?? new AppliedLimits(store)
  known.set(space, limits)
  return limits
}
