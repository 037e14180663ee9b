import { Value } from '@sinclair/typebox/value'
import { invalid, isOptions, knownFields, oneOf, quote, SluiceError } from '@sluice/core'
import { schemaFaults } from '../file/explain.ts'
import { placedPolicies, withPolicies } from '../file/named-policies.ts'
import type {
  EntryField,
  LimitEntry,
  OverrideEntry,
  PolicyEntry,
  PolicyFile,
} from '../file/policy-file.ts'
import { entryValues, untilSchema } from '../schema/file-schema.ts'

export const kills = ['none', 'shadow', 'off'] as const

/** Modes of the kill switch, which override the policies. */
export type Kill = (typeof kills)[number]

interface EntryOf<Field extends EntryField, Value> {
  readonly policy: string
  readonly field: Field
  readonly value: Value
  readonly reason?: string
  /** Time at which it expires, with its zone. */
  readonly until?: string
}

/** One policy field whose file value a change has replaced. */
type ValueEntry = EntryOf<Exclude<EntryField, 'override'>, LimitEntry | number | string>

/** An override that a change has put before the file's overrides. */
type OverrideLayerEntry = EntryOf<'override', Pick<OverrideEntry, 'key' | 'limit' | 'mode'>>

/** A change on top of the policy file: a value or an override. */
export type Entry = ValueEntry | OverrideLayerEntry

/** An entry, the file's value when it was set, and its author. */
export type KeptEntry = Entry & { readonly over?: unknown; readonly author?: string }

/** Changes on top of the file: the same for every process, even if their files differ. */
export interface Layer {
  readonly number: number
  readonly entries: readonly KeptEntry[]
  readonly kill: Kill
}

/** The fields that identify an entry; an override also has its key. */
export type EntryTarget =
  | Pick<ValueEntry, 'policy' | 'field'>
  | { readonly policy: string; readonly field: 'override'; readonly key: OverrideEntry['key'] }

/** Changes that form one version. A rollback is a new version. */
export interface PolicyEdit {
  /** Entries to set; each replaces an entry with the same target. */
  readonly set?: readonly Entry[]
  /** Entries to remove: the file's values apply again. */
  readonly remove?: readonly EntryTarget[]
  readonly kill?: Kill
  /** The version whose changes are restored. */
  readonly rollback?: string
}

/** Returns the target of an entry: a new entry for a target replaces the previous one. */
function targetOf(target: Entry | EntryTarget): string {
  const { policy, field } = target
  if (target.field !== 'override') return JSON.stringify([policy, field])
  const key: unknown = 'value' in target ? target.value.key : target.key
  return JSON.stringify([policy, field, isOptions(key) ? Object.entries(key).sort() : key])
}

/**
 * Checks an entry against a file.
 * @throws SluiceError that names the field, its value and the legal range
 */
function checkEntry(entry: Entry, file: PolicyFile): void {
  knownFields(entry, 'entry', ['policy', 'field', 'value', 'reason', 'until'])
  const { policy, field, value, until, reason } = entry
  if (typeof field !== 'string' || !Object.hasOwn(entryValues, field)) {
    const legal = `one of ${Object.keys(entryValues).join(', ')}: another algorithm, window or key starts a new count, and needs a new file`
    throw invalid({ option: 'entry.field' }, field, legal)
  }
  const names = placedPolicies(file).map(({ policy }) => policy.name)
  if (!names.includes(policy)) {
    throw new SluiceError(
      'SLUICE_POLICY_UNKNOWN',
      `entry.policy must be the name of a policy (there are ${names.join(', ')}), but is ${quote(policy)}`,
    )
  }
  const checked = field === 'override' && isOptions(value) ? { policy, ...value } : value
  const [wrong] = schemaFaults(entryValues[field], checked, { name: 'entry.value', most: 1 })
  if (wrong) throw new SluiceError('SLUICE_OPTION_INVALID', wrong.message)
  if (reason !== undefined) checkNoteText(reason, 'entry.reason')
  if (until === undefined) return
  if (Value.Check(untilSchema, until) && !Number.isNaN(Date.parse(until))) return
  const legal = 'a time with its zone, such as 2026-12-31T23:59:59Z'
  throw invalid({ option: 'entry.until' }, until, legal)
}

/**
 * Applies an edit to the changes of a file.
 * @throws SluiceError if an entry is wrong, or an entry to remove does not exist
 */
export function edited(
  { set = [], remove = [], kill }: PolicyEdit,
  layer: Layer,
  { file, author }: { readonly file: PolicyFile; readonly author: string | undefined },
): Layer {
  if (kill !== undefined) oneOf(kill, { option: 'kill' }, kills)
  const added = set.map((entry): KeptEntry => {
    checkEntry(entry, file)
    const over = valueInFile(entry, file)
    return {
      ...entry,
      ...(over !== undefined && { over }),
      ...(author !== undefined && { author }),
    }
  })
  for (const target of remove) {
    if (layer.entries.some((each) => targetOf(each) === targetOf(target))) continue
    const name = `${target.policy} ${target.field}`
    throw invalid({ option: 'entry' }, name, 'an entry that status() lists')
  }
  const replaced = new Set([...added, ...remove].map(targetOf))
  const kept = layer.entries.filter((each) => !replaced.has(targetOf(each)))
  return { ...layer, kill: kill ?? layer.kill, entries: [...added, ...kept] }
}

/**
 * Control characters, and characters that hide or reorder text; except joiners, which words need.
 */
const hiding = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/u
const visible = /[^\s\p{C}\u2800\p{Default_Ignorable_Code_Point}]/u

/** Returns whether an author or a reason is readable: one line with visible text. */
export function isNoteText(text: unknown): text is string {
  return typeof text === 'string' && text.length <= 500 && visible.test(text) && !hiding.test(text)
}

export function checkNoteText(text: unknown, option: string): void {
  if (isNoteText(text)) return
  throw invalid({ option }, text, 'one line of 1 to 500 visible characters')
}

/** Returns whether something has not ended yet. */
export function isActive(
  { until }: { readonly until?: string | undefined },
  nowMs: number,
): boolean {
  return until === undefined || Date.parse(until) > nowMs
}

/**
 * Returns the file's value that an entry replaces; `undefined` for no value or no such policy. For
 * an override, it is everything but the key.
 */
export function valueInFile(entry: Entry, file: PolicyFile): unknown {
  const { policy: name, field } = entry
  if (field === 'override') {
    const isSame = ({ policy, key }: OverrideEntry) =>
      targetOf({ policy, field, key }) === targetOf(entry)
    const { policy: _policy, key: _key, ...value } = file.overrides?.find(isSame) ?? {}
    return Object.keys(value).length === 0 ? undefined : value
  }
  const found = placedPolicies(file).find(({ policy }) => policy.name === name)?.policy
  if (field !== 'share') return found?.[field]
  return found?.enforce && 'share' in found.enforce ? found.enforce.share : undefined
}

/**
 * Applies the layer to the file: returns the policies that apply at a time. Entries for policies
 * that are not in the file change nothing.
 */
export function effective(file: PolicyFile, { entries }: Layer, nowMs: number): PolicyFile {
  const names = new Set(placedPolicies(file).map(({ policy }) => policy.name))
  const active = entries.filter((entry) => isActive(entry, nowMs) && names.has(entry.policy))
  const { overrides: given = [], ...rest } = file
  const overrides = [
    ...active.flatMap(({ policy, field, value, until }) =>
      field === 'override' ? [{ policy, ...value, ...(until !== undefined && { until }) }] : [],
    ),
    ...given.filter((override) => isActive(override, nowMs)),
  ]
  const changed = withPolicies(rest, (policy) =>
    // The newest entry comes first.
    active.filter((entry) => entry.policy === policy.name).reduceRight(changedPolicy, policy),
  )
  return overrides.length === 0 ? changed : { ...changed, overrides }
}

function changedPolicy(policy: PolicyEntry, { field, value }: KeptEntry): PolicyEntry {
  const { mode: _mode, enforce: _enforce, ...rest } = policy
  switch (field) {
    case 'override':
      return policy
    case 'mode':
      return { ...rest, mode: value === 'shadow' ? 'shadow' : 'enforce' }
    case 'share':
      return { ...rest, enforce: { share: Number(value) } }
    default:
      return Object.assign({}, policy, { [field]: value })
  }
}

/** Returns the next time at which something expires; `Infinity` if nothing does. */
export function nextEndMs(file: PolicyFile, { entries }: Layer, nowMs: number): number {
  const ends = [...entries, ...(file.overrides ?? [])].map(({ until = '' }) => Date.parse(until))
  return Math.min(...ends.filter((end) => end > nowMs))
}
