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

/** Attempts to write a change that conflicts with nobody. */
const maxAttempts = 3

/** An entry, and the file's value that it hides. */
export type StatusEntry = Entry & {
  /** The file's newer value that the entry hides. */
  readonly hides?: unknown
}

/** The current policies of a process. */
export interface PolicyState {
  /** The version of this process: hash of the file, and revision of the changes. */
  readonly version: string
  /** Revision of the newest changes. */
  readonly number: number
  readonly kill: Kill
  /** Origin of the kill switch; `undefined` if it is not set. */
  readonly killedBy: 'environment' | 'change' | undefined
  readonly entries: readonly StatusEntry[]
  /** The version that this process could not apply. */
  readonly refused: Refused | undefined
}

/** The current policies, here and in the fleet. */
export interface PolicyStatus extends PolicyState {
  /** Every process and the version that it runs; empty while the store is unavailable. */
  readonly fleet: readonly Member[]
}

/** The author of a change, and the reason. */
export interface ChangeOptions extends ChangeNote {
  /**
   * Revision of the changes that this one is based on, from `status()`: another change in between
   * is a conflict. @default the revision that this process knows
   */
  readonly number?: number | undefined
}

/** The outcome of a dry run. */
export interface Preview {
  /** The version that it would create. */
  readonly version: string
  /** The policies that would apply. */
  readonly file: PolicyFile
  readonly differences: readonly Difference[]
}

/** Policies that change while the application runs: a file, and changes on top of it. */
export class LivePolicySet implements LivePolicies {
  readonly #sources: PolicySources

  constructor(sources: PolicySources) {
    this.#sources = sources
  }

  attach(guard: LiveGuard): void {
    this.#sources.versions.attach(guard)
  }

  /** The id of this process in `status().fleet`. */
  get id(): string {
    return this.#sources.id
  }

  /** The current version of this process. */
  get version(): string {
    return this.#sources.versions.now.id
  }

  /** The current policies of this process: the file, with the changes applied. */
  get file(): PolicyFile {
    return this.#sources.versions.now.file
  }

  /** False without a store that keeps versions: then nothing can be changed at run time. */
  get canChange(): boolean {
    return this.#sources.document !== undefined
  }

  /** Each current quota once, including penalties. */
  get policies(): readonly Policy[] {
    return this.#sources.versions.now.registrations.policies
  }

  /** The limiters that use these policies, one per guard. */
  get limiters(): readonly Limiter[] {
    return this.#sources.versions.guards.map(({ limiter }) => limiter)
  }

  /** The key names by which an identity can be specified. */
  get keyNames(): readonly string[] {
    return keyNamesOf(this.#sources.versions.guards)
  }

  /**
   * Finds the current policies that count an identity, each with its key.
   * @param identity values by key name, such as { user: 'ada' }, or the digest of a key
   * @throws SluiceError if a name is unknown, or a value is not an identity
   */
  countsOf(identity: NamedIdentity): readonly CountedKey[] {
    return countsOf(identity, this.#sources.versions)
  }

  /** Returns the current policies of this process, without calling the store. */
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

  /** Returns the current state, here and in the fleet. */
  async status(): Promise<PolicyStatus> {
    const fleet = await this.#sources.document?.members().catch(() => [])
    return { ...this.state, fleet: fleet ?? [] }
  }

  /**
   * Overrides fields of policies, or adds overrides, all in one version. An entry takes precedence
   * over the file until it expires or is removed.
   * @returns the version that this process runs from now on
   * @throws or rejects with a SluiceError if an entry is wrong, the store fails, or another change
   * came first
   */
  async set(entries: Entry | readonly Entry[], options: ChangeOptions): Promise<string> {
    return this.change({ set: [entries].flat() }, options)
  }

  /** Removes an entry: the file's value applies again. */
  async remove(entry: EntryTarget, options: ChangeOptions): Promise<string> {
    return this.change({ remove: [entry] }, options)
  }

  /** Puts all policies into shadow mode, switches them off, or restores them with 'none'. */
  async kill(kill: Kill, options: ChangeOptions): Promise<string> {
    return this.change({ kill }, options)
  }

  /** Restores the changes of an earlier version, on top of the current file. */
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
      // With the same revision, a process has recorded its file, or the store has lost its data.
      if (this.#sources.shared.layer.number + 1 !== layer.number) break
    }
    throw conflict()
  }

  /**
   * Returns what a change would do, without making it.
   * @throws or rejects with the same SluiceError as the change
   */
  async preview(edit: PolicyEdit, { number }: { number?: number } = {}): Promise<Preview> {
    const { now } = this.#sources.versions
    const { id, file, kill } = (await this.#planned(edit, { number })).version
    const killed = { path: 'kill', from: now.kill, to: kill, newCount: false }
    const found = differences(now.file, file)
    return { version: id, file, differences: kill === now.kill ? found : [...found, killed] }
  }

  /** Returns the last 100 versions that the store keeps, newest first. */
  async history(): Promise<readonly VersionRecord[]> {
    return this.#document().records()
  }

  /** Returns the differences between two versions. @param to @default the current version */
  async diff(from: string, to: string = this.version): Promise<readonly Difference[]> {
    return differences(await this.#contentOf(from), await this.#contentOf(to))
  }

  /** Exports a version as a policy file. @param version @default the current version */
  async export(version: string = this.version): Promise<string> {
    return stringify(await this.#contentOf(version))
  }

  /** Stops watching. The policies still apply. */
  close(): Promise<void> {
    return this.#sources.close()
  }

  async #contentOf(version: string): Promise<PolicyFile> {
    if (version === this.version) return this.file
    const { file, layer, at } = recordOf(version, await this.history())
    return effective(file, layer, at)
  }

  /** Creates the version of an edit, without applying it. */
  async #planned(edit: PolicyEdit, { number, author }: Partial<ChangeOptions>) {
    const document = this.#document()
    const known = this.#sources.shared.layer.number
    // Another process may have created the version that the caller has seen.
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
      'the policies have no store that keeps versions: pass the store of the counts to openPolicies({ file, store })',
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
    'the policies were changed in the meantime: check status() and history(), then repeat the change',
  )
}
