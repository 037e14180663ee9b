import type {
  LimiterEvent,
  ResilienceEvent,
  StoreCall,
  StoreHealth,
  StoreRegion,
} from '@sluice/core'
import type { InstrumentName } from './instruments.ts'
import type { SeriesTable } from './series.ts'

/** Readings of the stores. If a process has several, the worst of them counts. */
export class StoreReadings {
  readonly #table: SeriesTable
  readonly #spaces = new Set<WeakRef<object>>()
  /** Held by its space alone, so that the store of a limiter that nobody uses is let go. */
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
    this.#set(
      'sluice_uncounted_units',
      all.reduce((sum, { uncountedUnits }) => sum + uncountedUnits, 0),
    )
    this.#set(
      'sluice_uncounted_bound_units',
      Math.max(0, ...all.map(({ uncountedBound }) => uncountedBound)),
    )
    this.#set('sluice_fleet_instances', Math.max(1, ...all.map(({ instances }) => instances)))
    const skews = all
      .map(({ clockSkewMs }) => clockSkewMs)
      .sort((a, b) => Math.abs(b) - Math.abs(a))
    this.#set('sluice_clock_skew_seconds', (skews[0] ?? 0) / 1_000)
    this.#set('sluice_deadlines_missed_total', this.#missed)
    this.#set('sluice_reconciled_units_total', this.#reconciled)
    const units = this.#table.of('sluice_prefetch_units_total')
    for (const event of ['taken', 'spent', 'returned', 'lapsed'] as const) {
      units.set(
        units.slot(event),
        all.reduce((sum, { grants }) => sum + grants[event], 0),
      )
    }
    this.#set(
      'sluice_prefetch_hot_keys',
      all.reduce((sum, { hotKeys }) => sum + hotKeys, 0),
    )
    for (const region of this.#liveSpaces().flatMap((space) => this.#regions.get(space) ?? [])) {
      this.#readRegion(region)
    }
  }

  #readRegion({ name, isGlobalAway, use }: StoreRegion): void {
    const { share, fromShare, borrowed, held } = use()
    this.#set('sluice_region_share', share, name)
    this.#set('sluice_region_units_total', fromShare, name, 'share')
    this.#set('sluice_region_units_total', borrowed, name, 'pool')
    this.#set('sluice_region_held_units', held, name)
    this.#set('sluice_region_global_away', isGlobalAway ? 1 : 0, name)
  }

  #healthOfAll(): readonly StoreHealth[] {
    return this.#liveSpaces().flatMap((space) => this.#health.get(space)?.() ?? [])
  }

  #liveSpaces(): readonly object[] {
    const spaces: object[] = []
    for (const ref of this.#spaces) {
      const space = ref.deref()
      if (space) spaces.push(space)
      else this.#spaces.delete(ref)
    }
    return spaces
  }

  #set(name: InstrumentName, value: number, ...labels: readonly string[]): void {
    const series = this.#table.of(name)
    series.set(series.slot(...labels), value)
  }
}
