import type { Check } from '../model/check.ts'
import { digestOf } from '../model/digest.ts'
import type { Store } from '../model/store.ts'
import { processWide } from '../runtime/process-wide.ts'
import { monotonicMs } from '../waiting/timers.ts'

type CountingStore = Pick<Store, 'keys' | 'space'>
type Applied = readonly [limit: number, atMs: number]

/** A limit as processes report it: the policy and the digest of the key, and how old it is. */
export type AppliedLimit = readonly [id: string, limit: number, ageMs: number]

const maxKept = 4_000

/**
 * The limits of the last requests of keys, where limits come with requests. Other stores than
 * memory keep counts alone, and a count without its limit is no verdict.
 */
export class AppliedLimits {
  readonly #store: CountingStore
  /** The newest are the last. */
  readonly #own = new Map<string, Applied>()
  #reported: ReadonlyMap<string, Applied> = new Map()

  constructor(store: CountingStore) {
    this.#store = store
  }

  /** Notes the limits of a request, as far as neither the policy nor the store knows them. */
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

  /** Returns the limit of the last request of a key; `undefined` if it is unknown. */
  of(check: Pick<Check, 'policy' | 'key' | 'digest'>): number | undefined {
    const id = this.#idOf(check)
    const [own, reported] = [this.#own.get(id), this.#reported.get(id)]
    const [last] = own && reported && own[1] < reported[1] ? reported : (own ?? reported ?? [])
    return last ?? this.#store.keys?.limitOf?.(check)
  }

  /** Returns limits for the other processes of a fleet, the newest first. */
  newest(count: number): readonly AppliedLimit[] {
    const newest = [...this.#own].slice(-count).reverse()
    return newest.map(([id, [limit, atMs]]) => [id, limit, Math.round(monotonicMs() - atMs)])
  }

  /** Takes the limits of all other processes. */
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

/** Returns the applied limits of all stores that count in one place. */
export function appliedLimitsOf(store: CountingStore): AppliedLimits {
  const space = store.space ?? store
  const limits = known.get(space) ?? new AppliedLimits(store)
  known.set(space, limits)
  return limits
}
