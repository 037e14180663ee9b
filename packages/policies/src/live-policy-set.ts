import { invalid, isOptions, knownFields, oneOf, SluiceError } from '@sluice/core'
import type { LiveGuard, LivePolicies } from '@sluice/http'
import { stringify } from 'yaml'
import type { PolicyFile } from './file/policy-file.ts'
import { ruleFaults } from './file/rules.ts'
import type { PolicySources } from './policy-sources.ts'
import { type Difference, differences } from './versions/diff.ts'
import {
  checkEntry,
  type Entry,
  type EntryTarget,
  effective,
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
  fileOf,
  type LayerDocument,
  type Member,
  type VersionRecord,
} from './versions/shared-layer.ts'
import type { Refused } from './versions/version-switch.ts'

/** Attempts to write one change that nobody contradicts. */
const maxAttempts = 3

/** A change: who makes it, and why. */
export interface ChangeOptions extends ChangeNote {
  /**
   * The number of the changes that this one is based on, as `status()` said it: another change in
   * between is a conflict. @default the one that this process knows
   */
  readonly number?: number
}

/** An entry, and what it hides. */
export type StatusEntry = Entry & {
  /** The newer value of the file that the entry hides. */
  readonly hides?: unknown
}

/** The policies in force, here and in the fleet. */
export interface PolicyStatus {
  /** The version of this process: hash of the file, and number of the changes. */
  readonly version: string
  /** Number of the newest changes. */
  readonly number: number
  readonly kill: Kill
  /** Origin of the kill switch; `undefined` if it is not set. */
  readonly killedBy: 'environment' | 'change' | undefined
  readonly entries: readonly StatusEntry[]
  /** The version that this process could not build. */
  readonly refused: Refused | undefined
  /** Every process, and the version that it runs; empty while the store cannot be asked. */
  readonly fleet: readonly Member[]
}

/** Policies that change while the application runs: a file, and changes over it. */
export class LivePolicySet implements LivePolicies {
  readonly #sources: PolicySources

  constructor(sources: PolicySources) {
    this.#sources = sources
  }

  attach(guard: LiveGuard): void {
    this.#sources.versions.attach(guard)
  }

  /** The version in force in this process. */
  get version(): string {
    return this.#sources.versions.now.id
  }

  /** Tells what is in force, here and in the fleet. */
  async status(): Promise<PolicyStatus> {
    const { shared, versions, document } = this.#sources
    const { number, entries } = shared.layer
    const { kill } = versions.now
    const fleet = await document?.members().catch(() => [])
    const active = entries.filter((entry) => isActive(entry, Date.now()))
    const killedBy = this.#sources.killedByEnvironment ? 'environment' : 'change'
    return {
      version: this.version,
      number,
      kill,
      killedBy: kill === 'none' ? undefined : killedBy,
      entries: active.map((entry) => this.#shown(entry)),
      refused: versions.refused,
      fleet: fleet ?? [],
    }
  }

  /**
   * Sets fields of policies, or overrides, over the file, all in one version. An entry wins until
   * it ends or is removed.
   * @returns the version that is in force in this process from now on
   * @throws or rejects with a SluiceError: when an entry is wrong, the store cannot be asked, or
   * somebody else has changed the policies first
   */
  async set(entries: Entry | readonly Entry[], options: ChangeOptions): Promise<string> {
    const { file } = this.#sources
    const added = [entries].flat().map((entry): KeptEntry => {
      checkEntry(entry, file)
      const over = valueInFile(entry, file)
      return over === undefined ? entry : { ...entry, over }
    })
    const targets = new Set(added.map(targetOf))
    return this.#change('change', options, ({ entries, ...layer }) => ({
      ...layer,
      entries: [...added, ...entries.filter((each) => !targets.has(targetOf(each)))],
    }))
  }

  /** Removes an entry: the value of the file is in force again. */
  async remove(entry: EntryTarget, options: ChangeOptions): Promise<string> {
    const target = targetOf(entry)
    const { entries } = this.#sources.shared.layer
    if (!entries.some((each) => targetOf(each) === target)) {
      const name = `${entry.policy} ${entry.field}`
      throw invalid({ option: 'entry' }, name, 'an entry that status() lists')
    }
    return this.#change('change', options, ({ entries, ...layer }) => ({
      ...layer,
      entries: entries.filter((each) => targetOf(each) !== target),
    }))
  }

  /** Puts everything into shadow, switches everything off, or on again with 'none'. */
  async kill(kill: Kill, options: ChangeOptions): Promise<string> {
    oneOf(kill, { option: 'kill' }, kills)
    return this.#change('kill', options, (layer) => ({ ...layer, kill }))
  }

  /** Puts the changes of an earlier version in force again, over the file as it is now. */
  async rollback(version: string, options: ChangeOptions): Promise<string> {
    const { layer } = await this.#record(version)
    return this.#change('rollback', options, () => layer)
  }

  /** The versions that the store keeps, the newest first: the last 100. */
  async history(): Promise<readonly VersionRecord[]> {
    return this.#document().records()
  }

  /** Finds the differences between two versions. @param to @default the version in force */
  async diff(from: string, to: string = this.version): Promise<readonly Difference[]> {
    return differences(await this.#contentOf(from), await this.#contentOf(to))
  }

  /** Writes a version as a policy file. @param version @default the one in force */
  async export(version: string = this.version): Promise<string> {
    return stringify(await this.#contentOf(version))
  }

  /** Stops watching. The policies stay in force. */
  close(): Promise<void> {
    return this.#sources.close()
  }

  #shown({ over, ...entry }: KeptEntry): StatusEntry {
    const now = valueInFile(entry, this.#sources.file)
    return JSON.stringify(now) === JSON.stringify(over) ? entry : { ...entry, hides: now }
  }

  async #contentOf(version: string): Promise<PolicyFile> {
    if (version === this.version) return this.#sources.versions.now.file
    const { file, layer, at } = await this.#record(version)
    return effective(file, layer, at)
  }

  async #record(version: string): Promise<VersionRecord> {
    const records = await this.#document().records()
    const found = records.find(({ id }) => id === version) ?? combined(records, version)
    if (found) return found
    throw invalid({ option: 'version' }, version, 'a version that history() lists')
  }

  #document(): LayerDocument {
    const { document } = this.#sources
    if (document) return document
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      'the policies have no store that keeps versions: give openPolicies({ file, store }) the store of the counts',
    )
  }

  async #change(
    kind: VersionRecord['kind'],
    options: ChangeOptions,
    edit: (layer: Layer) => Layer,
  ): Promise<string> {
    const document = this.#document()
    checkNote(options)
    let before = this.#sources.shared
    const { number } = before.layer
    if (options.number !== undefined && options.number !== number) throw conflict()
    const edited = edit(before.layer)
    const now = Date.now()
    const entries = edited.entries.filter((entry) => isActive(entry, now))
    const layer: Layer = { ...edited, number: number + 1, entries }
    const version = this.#sources.versionWith(layer)
    const [fault] = ruleFaults(version.file)
    if (fault) throw new SluiceError('SLUICE_OPTION_INVALID', fault.message)
    this.#sources.versions.check(version)
    const { author, reason } = options
    const record = this.#sources.recordOf(version, kind, { layer, author, reason })
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const after = await document.write(before, layer, record)
      if (after) {
        this.#sources.take(after)
        return version.id
      }
      await this.#sources.askStore()
      before = this.#sources.shared
      // With the same number, a process has recorded its file, or the store has lost its data.
      if (before.layer.number !== number) break
    }
    throw conflict()
  }
}

/**
 * Finds a version of a process that did not make the changes itself: its file is in one record, and
 * the changes are in another one.
 */
function combined(records: readonly VersionRecord[], version: string): VersionRecord | undefined {
  const hash = fileOf(version)
  const ofFile = records.find(({ id }) => fileOf(id) === hash)
  const ofLayer = records.find(({ number }) => version === `${hash}.${number}`)
  return ofFile && ofLayer && { ...ofLayer, id: version, file: ofFile.file }
}

function checkNote(options: ChangeOptions): void {
  knownFields(options, 'change', ['author', 'reason', 'number'])
  for (const field of ['author', 'reason'] as const) {
    const value: unknown = isOptions(options) ? options[field] : undefined
    if (typeof value === 'string' && value !== '') continue
    throw invalid({ option: field }, value, 'text that is not empty, for the history')
  }
}

function conflict(): SluiceError {
  return new SluiceError(
    'SLUICE_POLICY_CHANGED',
    'somebody else has changed the policies first: look at status() and history(), and change them again',
  )
}
