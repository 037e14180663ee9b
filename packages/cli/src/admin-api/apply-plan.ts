import { isDeepStrictEqual } from 'node:util'
import {
  type Difference,
  differences,
  type OverrideEntry,
  type PolicyEntry,
  type PolicyFile,
  placedPolicies,
} from '@sluice/policies'
import type { Change, PoliciesInForce } from './answers.ts'

type Field = 'limit' | 'burst' | 'mode' | 'share' | 'override'

interface SetEntry {
  readonly policy: string
  readonly field: Field
  readonly value: unknown
  readonly until?: string
}

type Target = Pick<SetEntry, 'policy' | 'field'>

export interface ApplyPlan {
  readonly set: readonly SetEntry[]
  /** Entries to remove, since the fleet's file already has the value. */
  readonly remove: readonly Target[]
  /** Differences that cannot be applied at run time. */
  readonly needDeploy: readonly Difference[]
  /** Overrides made at run time that are not in the file: they stay. */
  readonly kept: readonly string[]
}

interface Situation {
  readonly wanted: PolicyFile
  readonly inForce: PolicyFile
  readonly entries: PoliciesInForce['entries']
  /** Differences that removing all field entries would make. */
  readonly withoutEntries: Change['differences']
}

export function applyPlan(situation: Situation): ApplyPlan {
  const { wanted, inForce } = situation
  const before = byName(inForce)
  const steps = placedPolicies(wanted).flatMap(({ policy }) => {
    const current = before.get(policy.name)
    if (!current) return []
    return [
      ofField('limit', policy, current, situation),
      ofField('burst', policy, current, situation),
      ofMode(policy, current, situation),
    ]
  })
  const overrides = ofOverrides(situation)
  const made = new Set(['overrides', ...steps.flatMap(({ paths }) => paths)])
  const others = differences(inForce, wanted).filter(({ path }) => !made.has(path))
  return {
    set: [...steps.flatMap(({ set }) => set), ...overrides.set],
    remove: steps.flatMap(({ remove }) => remove),
    needDeploy: [...others, ...overrides.needDeploy],
    kept: overrides.kept,
  }
}

interface Step extends Pick<ApplyPlan, 'set' | 'remove'> {
  /** The differences that it resolves. */
  readonly paths: readonly string[]
}

const nothing: Step = { set: [], remove: [], paths: [] }

function ofField(
  field: 'limit' | 'burst',
  wanted: PolicyEntry,
  current: PolicyEntry,
  { entries, withoutEntries }: Situation,
): Step {
  const { name: policy } = wanted
  const value = wanted[field]
  if (isDeepStrictEqual(value, current[field])) return nothing
  const path = `policies.${policy}.${field}`
  const isChanged = entries.some((entry) => entry.policy === policy && entry.field === field)
  const base = withoutEntries.find((difference) => difference.path === path)
  if (isChanged && base && isDeepStrictEqual(base.to, value)) {
    return { set: [], remove: [{ policy, field }], paths: [path] }
  }
  // No value can remove a burst that the file omits.
  if (value === undefined) return nothing
  return { set: [{ policy, field, value }], remove: [], paths: [path] }
}

/** Mode and share replace each other: an entry of one removes an entry of the other. */
function ofMode(wanted: PolicyEntry, current: PolicyEntry, { entries }: Situation): Step {
  const { name: policy } = wanted
  if (isByFunction(wanted) || isByFunction(current)) return nothing
  const [share, mode] = [shareOf(wanted), wanted.mode ?? 'enforce']
  const paths = [`policies.${policy}.mode`, `policies.${policy}.enforce`]
  // An omitted mode and the default mode are the same.
  const isSame = share === shareOf(current) && mode === (current.mode ?? 'enforce')
  if (isSame) return { ...nothing, paths }
  const field = share === undefined ? 'mode' : 'share'
  const other = share === undefined ? 'share' : 'mode'
  const isThere = entries.some((entry) => entry.policy === policy && entry.field === other)
  return {
    set: [{ policy, field, value: share ?? mode }],
    remove: isThere ? [{ policy, field: other }] : [],
    paths,
  }
}

function isByFunction({ enforce }: PolicyEntry): boolean {
  return enforce !== undefined && 'by' in enforce
}

function shareOf({ enforce }: PolicyEntry): number | undefined {
  return enforce && 'share' in enforce ? enforce.share : undefined
}

function ofOverrides({ wanted, inForce, entries }: Situation) {
  const changed = new Map<string, OverrideEntry>()
  for (const { policy, field, value, until } of entries) {
    if (field !== 'override' || !isOverride(value)) continue
    const override = { ...value, policy, ...(until !== undefined && { until }) }
    changed.set(idOf(override), override)
  }
  const current = new Map<string, OverrideEntry>()
  for (const override of inForce.overrides ?? []) {
    const id = idOf(override)
    // The first one counts; those of changes come first.
    if (!current.has(id)) current.set(id, changed.get(id) ?? override)
  }
  const asked = (wanted.overrides ?? []).filter(
    ({ until }) => until === undefined || Date.parse(until) > Date.now(),
  )
  const known = new Set(asked.map(idOf))
  const missing = [...current].filter(([id]) => !known.has(id))
  return {
    set: asked
      .filter((override) => !isSame(override, current.get(idOf(override))))
      .map(({ policy, key, limit, mode, until }): SetEntry => {
        const value = { key, ...(limit !== undefined && { limit }), ...(mode && { mode }) }
        return { policy, field: 'override', value, ...(until !== undefined && { until }) }
      }),
    needDeploy: missing.flatMap(([id, from]): readonly Difference[] =>
      changed.has(id) ? [] : [{ path: 'overrides', from, to: undefined, newCount: false }],
    ),
    kept: missing.flatMap(([id, { policy, key }]) =>
      changed.has(id) ? [`${policy} of ${JSON.stringify(key)}`] : [],
    ),
  }
}

function isOverride(value: unknown): value is Omit<OverrideEntry, 'policy'> {
  return typeof value === 'object' && value !== null && 'key' in value
}

function idOf({ policy, key }: Pick<OverrideEntry, 'policy' | 'key'>): string {
  return JSON.stringify([policy, Object.entries(key).sort()])
}

function isSame(wanted: OverrideEntry, current: OverrideEntry | undefined): boolean {
  if (!current) return false
  const shown = ({ limit, mode, until }: OverrideEntry) => ({ limit, mode, until })
  return isDeepStrictEqual(shown(wanted), shown(current))
}

function byName(file: PolicyFile): ReadonlyMap<string, PolicyEntry> {
  return new Map(placedPolicies(file).map(({ policy }) => [policy.name, policy]))
}
