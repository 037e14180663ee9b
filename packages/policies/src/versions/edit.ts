import { invalid, isOptions, knownFields, oneOf, SluiceError } from '@sluice/core'
import type { PolicyFile } from '../file/policy-file.ts'
import {
  checkEntry,
  checkNoteText,
  type Entry,
  type EntryTarget,
  type KeptEntry,
  type Kill,
  kills,
  type Layer,
  targetOf,
  valueInFile,
} from './layer.ts'
import type { ChangeNote, VersionRecord } from './shared-layer.ts'

/** Changes that make one version. A rollback stands alone. */
export interface PolicyEdit {
  /** Entries over the file; each takes the place of an entry with the same target. */
  readonly set?: readonly Entry[]
  /** Entries that end: the values of the file are in force again. */
  readonly remove?: readonly EntryTarget[]
  readonly kill?: Kill
  /** The version whose changes are put in force again. */
  readonly rollback?: string
}

/** The author of a change, and the reason. */
export interface ChangeOptions extends ChangeNote {
  /**
   * The number of the changes that this one is based on, as `status()` said it: another change in
   * between is a conflict. @default the one that this process knows
   */
  readonly number?: number | undefined
}

export function kindOf({ rollback, kill }: PolicyEdit): VersionRecord['kind'] {
  if (rollback !== undefined) return 'rollback'
  return kill === undefined ? 'change' : 'kill'
}

/**
 * Applies an edit to the changes over a file.
 * @throws SluiceError when an entry is wrong, or one that is to be removed is not there
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

export function checkNote(options: ChangeOptions): void {
  knownFields(options, 'change', ['author', 'reason', 'number'])
  for (const field of ['author', 'reason'] as const) {
    checkNoteText(isOptions(options) ? options[field] : undefined, field)
  }
}

export function conflict(): SluiceError {
  return new SluiceError(
    'SLUICE_POLICY_CHANGED',
    'somebody else has changed the policies first: look at status() and history(), then repeat the change',
  )
}
