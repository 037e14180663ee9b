import type { Policy, PolicySetVersion, StoreRegion } from '@sluice/core'
import type { SeriesTable } from './series.ts'

/** The version of policies that are given in code, as a label. */
const inCode = 'code'
/** The most versions of one policy that are kept between two readings. */
const maxVersions = 8

interface Description {
  readonly policy: Policy
  /** `undefined` for a policy that is given in code, which is always in force. */
  readonly version: PolicySetVersion | undefined
  /** The region of its store, if it has one. */
  readonly region: StoreRegion | undefined
}

/**
 * Shows the policies that are in force: the gauges of a version end when another one takes its
 * place.
 */
export class PolicyDescriptions {
  readonly #table: SeriesTable
  readonly #byLabel = new Map<string, readonly Description[]>()
  #isChanged = false

  constructor(table: SeriesTable) {
    this.#table = table
  }

  /** Adds a policy, once for each version. */
  add(label: string, description: Description): void {
    const known = this.#byLabel.get(label) ?? []
    if (known.some(({ version }) => version === description.version)) return
    this.#byLabel.set(label, [...known, description].slice(-maxVersions))
    this.#isChanged = true
  }

  has(label: string): boolean {
    return this.#byLabel.has(label)
  }

  /** Writes the gauges anew if another version came in force. */
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
    const [limits, windows, infos, bounds] = [
      this.#table.of('sluice_policy_limit'),
      this.#table.of('sluice_policy_window_seconds'),
      this.#table.of('sluice_policy_info'),
      this.#table.of('sluice_region_bound_units'),
    ]
    for (const series of [limits, windows, infos, bounds]) series.clear()
    for (const [label, known] of this.#byLabel) {
      for (const { policy, version, region } of known) {
        const { limit, windowMs, algorithm, enforcedShare } = policy
        const mode = enforcedShare === 0 ? 'shadow' : enforcedShare === 1 ? 'enforce' : 'canary'
        limits.set(limits.slot(label), limit)
        windows.set(windows.slot(label), windowMs / 1_000)
        infos.set(infos.slot(label, mode, algorithm, version?.id ?? inCode), 1)
        for (const { part, units } of region?.boundsOf(policy) ?? []) {
          bounds.set(bounds.slot(label, region?.name ?? '', part), units)
        }
      }
    }
  }
}
