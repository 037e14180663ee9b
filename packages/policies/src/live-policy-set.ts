import { knownFields, type Limiter, type Policy, SluiceError } from '@sluice/core'
import type { LiveGuard, LivePolicies } from '@sluice/http'
import { stringify } from 'yaml'
import type { PolicyFile } from './file/policy-file.ts'
import type { PolicySources } from './policy-sources.ts'
import { ruleFaults } from './reading/rules.ts'
import {
  type CountedKey,
  countsOf,
  keyNamesOf,
  type NamedIdentity,
} from './versions/counted-keys.ts'
import { type Difference, differences } from './versions/diff.ts'
import {
  checkNoteText,
  type Entry,
  type EntryTarget,
  edited,
  effective,
  isActive,
  type Kill,
  type Layer,
  type PolicyEdit,
  valueInFile,
} from './versions/layer.ts'
import {
  type ChangeNote,
  type LayerDocument,
  type Member,
  recordOf,
  type VersionRecord,
} from './versions/shared-layer.ts'
import type { Refused } from './versions/version.ts'

/** Attempts to write one change that nobody contradicts. */
const maxAttempts = 3

/** An entry, and the value of the file that it hides. */
export type StatusEntry = Entry & {
  /** The newer value of the file that the entry hides. */
  readonly hides?: unknown
}

/** The policies in force in a process. */
export interface PolicyState {
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
}

/** The policies in force, here and in the fleet. */
export interface PolicyStatus extends PolicyState {
  /** Every process, and the version that it runs; empty while the store cannot be asked. */
  readonly fleet: readonly Member[]
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

/** Policies that change while the application runs: a file, and changes over it. */
export class LivePolicySet implements LivePolicies {
  readonly #sources: PolicySources

  constructor(sources: PolicySources) {
    this.#sources = sources
  }

  attach(guard: LiveGuard): void {
    this.#sources.versions.attach(guard)
  }

  /** The id of this process among those of `status().fleet`. */
  get id(): string {
    return this.#sources.id
  }

  /** The version in force in this process. */
  get version(): string {
    return this.#sources.versions.now.id
  }

  /** The policies in force in this process: the file, with the changes over it. */
  get file(): PolicyFile {
    return this.#sources.versions.now.file
  }

  /** False without a store that keeps versions: then nothing can be changed at run time. */
  get canChange(): boolean {
    return this.#sources.document !== undefined
  }

  /** Each quota that is in force, once; with penalties. */
  get policies(): readonly Policy[] {
    return this.#sources.versions.now.registrations.policies
  }

  /** The limiters that these policies are in force in, one for each guard. */
  get limiters(): readonly Limiter[] {
    return this.#sources.versions.guards.map(({ limiter }) => limiter)
  }

  /** The names of the keys that an identity can be given by. */
  get keyNames(): readonly string[] {
    return keyNamesOf(this.#sources.versions.guards)
  }

  /**
   * Finds the policies in force that count an identity, each with the key that it has for it.
   * @param identity values by the names of keys, such as { user: 'ada' }, or the digest of a key
   * @throws SluiceError if a name is unknown, or a value is no identity
   */
  countsOf(identity: NamedIdentity): readonly CountedKey[] {
    return countsOf(identity, this.#sources.versions)
  }

  /** The policies in force in this process; the store is not asked. */
  get state(): PolicyState {
    const { file, shared, versions } = this.#sources
    const { kill } = versions.now
    const active = shared.layer.entries.filter((entry) => isActive(entry, Date.now()))
    const shown = active.map(({ over, author: _author, ...entry }): StatusEntry => {
      const hides = valueInFile(entry, file)
      return JSON.stringify(hides) === JSON.stringify(over) ? entry : { ...entry, hides }
    })
    return {
      version: this.version,
      number: shared.layer.number,
      kill,
      killedBy: kill === 'none' ? undefined : this.#sources.killedBy,
      entries: shown,
      refused: versions.refused,
    }
  }

  /** Tells what is in force, here and in the fleet. */
  async status(): Promise<PolicyStatus> {
    const fleet = await this.#sources.document?.members().catch(() => [])
    return { ...this.state, fleet: fleet ?? [] }
  }

  /**
   * Sets fields of policies, or overrides, over the file, all in one version. An entry wins until
   * it ends or is removed.
   * @returns the version that is in force in this process from now on
   * @throws or rejects with a SluiceError: when an entry is wrong, the store cannot be asked, or
   * somebody else has changed the policies first
   */
  async set(entries: Entry | readonly Entry[], options: ChangeOptions): Promise<string> {
    return this.change({ set: [entries].flat() }, options)
  }

  /** Removes an entry: the value of the file is in force again. */
  async remove(entry: EntryTarget, options: ChangeOptions): Promise<string> {
    return this.change({ remove: [entry] }, options)
  }

  /** Puts everything into shadow, switches everything off, or on again with 'none'. */
  async kill(kill: Kill, options: ChangeOptions): Promise<string> {
    return this.change({ kill }, options)
  }

  /** Puts the changes of an earlier version in force again, over the file as it is now. */
  async rollback(version: string, options: ChangeOptions): Promise<string> {
    return this.change({ rollback: version }, options)
  }

  /** Makes several changes in one version: entries to set and to remove, and the kill switch. */
  async change(edit: PolicyEdit, options: ChangeOptions): Promise<string> {
    knownFields(options, 'change', ['author', 'reason', 'number'])
    const { author, reason } = options
    checkNoteText(author, 'author')
    checkNoteText(reason, 'reason')
    const document = this.#document()
    const { layer } = await this.#planned(edit, options)
    const record = this.#sources.recordOf(kindOf(edit), layer, { author, reason })
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const after = await document.write(this.#sources.shared, record)
      if (after) {
        this.#sources.take(after)
        return record.id
      }
      await this.#sources.askStore()
      // With the same number, a process has recorded its file, or the store has lost its data.
      if (this.#sources.shared.layer.number + 1 !== layer.number) break
    }
    throw conflict()
  }

  /**
   * Tells what a change would come to, and changes nothing.
   * @throws or rejects with a SluiceError as the change would
   */
  async preview(edit: PolicyEdit, { number }: { number?: number } = {}): Promise<Preview> {
    const { now } = this.#sources.versions
    const { id, file, kill } = (await this.#planned(edit, { number })).version
    const killed = { path: 'kill', from: now.kill, to: kill, newCount: false }
    const found = differences(now.file, file)
    return { version: id, file, differences: kill === now.kill ? found : [...found, killed] }
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

  async #contentOf(version: string): Promise<PolicyFile> {
    if (version === this.version) return this.file
    const { file, layer, at } = recordOf(version, await this.history())
    return effective(file, layer, at)
  }

  /** Makes the version of an edit, and puts nothing in force. */
  async #planned(edit: PolicyEdit, { number, author }: Partial<ChangeOptions>) {
    const document = this.#document()
    const known = this.#sources.shared.layer.number
    // Another process may have made the version that the caller has seen.
    if (number !== undefined && number > known) await this.#sources.askStore()
    const before = this.#sources.shared.layer
    if (number !== undefined && number !== before.number) throw conflict()
    const { rollback } = edit
    const base =
      rollback === undefined ? before : recordOf(rollback, await document.records()).layer
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

  #document(): LayerDocument {
    if (this.#sources.document) return this.#sources.document
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      'the policies have no store that keeps versions: give openPolicies({ file, store }) the store of the counts',
    )
  }
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
