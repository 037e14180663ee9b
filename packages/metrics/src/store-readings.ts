import type {
  LimiterEvent,
  ResilienceEvent,
  StoreCall,
  StoreHealth,
  StoreRegion,
} from '@sluice/core'
import { type SeriesTable, sum } from './series.ts'

const breakers: readonly StoreHealth['breaker'][] = ['closed', 'half-open', 'open']

/** The numeric fields of a store's health. */
type Quantity = {
  [Field in keyof StoreHealth]: StoreHealth[Field] extends number ? Field : never
}[keyof StoreHealth]

/** Readings of the stores. If a process has several, the worst of them counts. */
export class StoreReadings {
  readonly #table: SeriesTable
  readonly #spaces = new Set<WeakRef<object>>()
  /** Referenced only by its space, so that the store of an unused limiter can be collected. */
  readonly #health = new WeakMap<object, () => StoreHealth>()
  readonly #regions = new WeakMap<object, StoreRegion>()
  #reconciled = 0
  #missed = 0

  constructor(table: SeriesTable) {
    this.#table = table
  }

  watch({ space, storeHealth, region }: LimiterEvent): void {
    if (region) this.#regions.set(space, region)
    if (!this.#health.has(space)) this.#spaces.add(new WeakRef(space))
    this.#health.set(space, storeHealth)
  }

  note(event: ResilienceEvent): void {
    if (event.type === 'deadline-missed') this.#missed += event.checks
    if (event.type === 'reconciled') this.#reconciled += event.units
  }

  noteCall({ durationMs, checks, failed }: StoreCall): void {
    this.#table.observe('sluice_store_call_seconds', durationMs / 1_000)
    this.#table.observe('sluice_store_call_checks', checks)
    this.#table.add('sluice_store_call_failures_total', failed ? 1 : 0)
  }

  read(): void {
    const table = this.#table
    const spaces = this.#liveSpaces()
    const all = spaces.flatMap((space) => this.#health.get(space)?.() ?? [])
    const each = (field: Quantity) => all.map((health) => health[field])
    const states = all.map(({ breaker }) => breakers.indexOf(breaker))
    const skews = each('clockSkewMs').sort((a, b) => Math.abs(b) - Math.abs(a))
    table.set('sluice_breaker_state', Math.max(0, ...states))
    table.set('sluice_fallback_active', all.some(({ isAway }) => isAway) ? 1 : 0)
    table.set('sluice_keys_owed', sum(each('keysOwed')))
    table.set('sluice_uncounted_units', sum(each('uncountedUnits')))
    table.set('sluice_uncounted_bound_units', Math.max(0, ...each('uncountedBound')))
    table.set('sluice_fleet_instances', Math.max(1, ...each('instances')))
    table.set('sluice_clock_skew_seconds', (skews[0] ?? 0) / 1_000)
    table.set('sluice_deadlines_missed_total', this.#missed)
    table.set('sluice_reconciled_units_total', this.#reconciled)
    table.set('sluice_prefetch_hot_keys', sum(each('hotKeys')))
    for (const event of ['taken', 'spent', 'returned', 'lapsed'] as const) {
      const units = all.map(({ grants }) => grants[event])
      table.set('sluice_prefetch_units_total', sum(units), event)
    }
    for (const { name, isGlobalAway, use } of spaces.flatMap((of) => this.#regions.get(of) ?? [])) {
      const { share, fromShare, borrowed, held } = use()
      table.set('sluice_region_share', share, name)
      table.set('sluice_region_units_total', fromShare, name, 'share')
      table.set('sluice_region_units_total', borrowed, name, 'pool')
      table.set('sluice_region_held_units', held, name)
      table.set('sluice_region_global_away', isGlobalAway ? 1 : 0, name)
    }
  }

  #liveSpaces(): readonly object[] {
    return [...this.#spaces].flatMap((ref) => {
      const space = ref.deref()
      if (!space) this.#spaces.delete(ref)
      return space ?? []
    })
  }
}
