import { invalid, knownFields, oneOf, SluiceError } from '@sluice/core'
import type { PolicyFile } from './file/policy-file.ts'
import type { PolicySources } from './policy-sources.ts'
import { ruleFaults } from './reading/rules.ts'
import { type Difference, differences } from './versions/diff.ts'
import {
  checkEntry,
  checkNoteText,
  type Entry,
  type EntryTarget,
  isActive,
  type KeptEntry,
  type Kill,
  kills,
  type Layer,
  targetOf,
  valueInFile,
} from './versions/layer.ts'
import {
  type ChangeNote,
  type LayerDocument,
  recordOf,
  type VersionRecord,
} from './versions/shared-layer.ts'

/** Attempts to write one change that nobody contradicts. */
const maxAttempts = 3

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

/** The outcome of a change that was not made. */
export interface Preview {
  /** The version that it would make. */
  readonly version: string
  /** The policies that would be in force. */
  readonly file: PolicyFile
  readonly differences: readonly Difference[]
}

/** Makes changes: plans the version, writes it to the store, and puts it in force here. */
export class PolicyChanges {
  readonly document: LayerDocument
  readonly #sources: PolicySources

  constructor(sources: PolicySources, document: LayerDocument) {
    this.#sources = sources
    this.document = document
  }

  /** @returns the version that is in force from now on */
  async make(edit: PolicyEdit, options: ChangeOptions): Promise<string> {
    knownFields(options, 'change', ['author', 'reason', 'number'])
    const { author, reason } = options
    checkNoteText(author, 'author')
    checkNoteText(reason, 'reason')
    const { layer, version } = await this.#planned(edit, options)
    const record = this.#sources.recordOf(version, kindOf(edit), { layer, author, reason })
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const after = await this.document.write(this.#sources.shared, layer, record)
      if (after) {
        this.#sources.take(after)
        return version.id
      }
      await this.#sources.askStore()
      // With the same number, a process has recorded its file, or the store has lost its data.
      if (this.#sources.shared.layer.number + 1 !== layer.number) break
    }
    throw conflict()
  }

  async preview(edit: PolicyEdit, number: number | undefined): Promise<Preview> {
    const { now } = this.#sources.versions
    const { version } = await this.#planned(edit, { number })
    const { id, file, kill } = version
    const killed = { path: 'kill', from: now.kill, to: kill, newCount: false }
    const found = differences(now.file, file)
    return { version: id, file, differences: kill === now.kill ? found : [...found, killed] }
  }

  /** Makes the version of an edit, and puts nothing in force. */
  async #planned(edit: PolicyEdit, { number, author }: Partial<ChangeOptions>) {
    const known = this.#sources.shared.layer.number
    // Another process may have made the version that the caller has seen.
    if (number !== undefined && number > known) await this.#sources.askStore()
    const before = this.#sources.shared.layer
    if (number !== undefined && number !== before.number) throw conflict()
    const { rollback } = edit
    const base = rollback === undefined ? before : await this.#layerOf(rollback)
    const wanted = edited(edit, base, { file: this.#sources.file, author })
    const nowMs = Date.now()
    const entries = wanted.entries.filter((entry) => isActive(entry, nowMs))
    const layer: Layer = { ...wanted, number: before.number + 1, entries }
    const version = this.#sources.versionWith(layer)
    const [fault] = ruleFaults(version.file)
    if (fault) throw new SluiceError('SLUICE_OPTION_INVALID', fault.message)
    this.#sources.versions.check(version)
    return { layer, version }
  }

  async #layerOf(version: string): Promise<Layer> {
    return recordOf(version, await this.document.records()).layer
  }
}

/**
 * Applies an edit to the changes over a file.
 * @throws SluiceError when an entry is wrong, or one that is to be removed is not there
 */
function edited(
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

function kindOf({ rollback, kill }: PolicyEdit): VersionRecord['kind'] {
  if (rollback !== undefined) return 'rollback'
  return kill === undefined ? 'change' : 'kill'
}

function conflict(): SluiceError {
  return new SluiceError(
    'SLUICE_POLICY_CHANGED',
    'somebody else has changed the policies first: look at status() and history(), then repeat the change',
  )
}
