import type { Policy, PolicySetVersion, StoreRegion } from '@sluice/core'
import type { SeriesTable } from './series.ts'

/** Maximum number of versions of one policy kept between two scrapes. */
const maxVersions = 8
const kills = ['none', 'shadow', 'off'] as const

interface Description {
  readonly policy: Policy
  /** `undefined` for a policy defined in code, which always applies. */
  readonly version: PolicySetVersion | undefined
  /** The region of its store, if it has one. */
  readonly region: StoreRegion | undefined
}

/** Shows the current policies: the gauges of a version end when another one replaces it. */
export class PolicyDescriptions {
  readonly #table: SeriesTable
  readonly #byLabel = new Map<string, readonly Description[]>()
  #isChanged = false

  constructor(table: SeriesTable) {
    this.#table = table
  }

  /** Adds a policy, once per version. */
  add(label: string, description: Description): void {
    const known = this.#byLabel.get(label) ?? []
    if (known.some(({ version }) => version === description.version)) return
    this.#byLabel.set(label, [...known, description].slice(-maxVersions))
    this.#isChanged = true
  }

  has(label: string): boolean {
    return this.#byLabel.has(label)
  }

  /** Rewrites the gauges if another version was applied. */
  read(): void {
    for (const [label, known] of this.#byLabel) {
      const inForce = known.filter(({ version }) => version?.isInForce !== false)
      if (inForce.length === known.length) continue
      if (inForce.length > 0) this.#byLabel.set(label, inForce)
      else this.#byLabel.delete(label)
      this.#isChanged = true
    }
    if (!this.#isChanged) return
    this.#isChanged = false
    const table = this.#table
    table.clear('sluice_policy_limit', 'sluice_policy_window_seconds')
    table.clear('sluice_policy_info', 'sluice_region_bound_units')
    const inForce = [...this.#byLabel.values()].flat()
    const killed = inForce.map(({ version }) => kills.indexOf(version?.kill ?? 'none'))
    table.set('sluice_kill_switch', Math.max(0, ...killed))
    for (const [label, known] of this.#byLabel) {
      for (const { policy, version, region } of known) {
        const { limit, windowMs, algorithm, enforcedShare } = policy
        const own = enforcedShare === 0 ? 'shadow' : enforcedShare === 1 ? 'enforce' : 'canary'
        const mode = version?.kill === 'off' ? 'off' : own
        table.set('sluice_policy_limit', limit, label)
        table.set('sluice_policy_window_seconds', windowMs / 1_000, label)
        table.set('sluice_policy_info', 1, label, mode, algorithm, version?.id ?? 'code')
        for (const { part, units } of region?.boundsOf(policy) ?? []) {
          table.set('sluice_region_bound_units', units, label, region?.name ?? '', part)
        }
      }
    }
  }
}
