import { type Limiter, type Policy, SluiceError } from '@sluice/core'
import type { LiveGuard, LivePolicies } from '@sluice/http'
import { stringify } from 'yaml'
import type { PolicyFile } from './file/policy-file.ts'
import {
  type ChangeOptions,
  PolicyChanges,
  type PolicyEdit,
  type Preview,
} from './policy-changes.ts'
import type { PolicySources } from './policy-sources.ts'
import {
  type CountedKey,
  countsOf,
  keyNamesOf,
  type NamedIdentity,
} from './versions/counted-keys.ts'
import { type Difference, differences } from './versions/diff.ts'
import {
  type Entry,
  type EntryTarget,
  effective,
  isActive,
  type KeptEntry,
  type Kill,
  valueInFile,
} from './versions/layer.ts'
import { type Member, recordOf, type VersionRecord } from './versions/shared-layer.ts'
import type { Refused } from './versions/version.ts'

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

/** Policies that change while the application runs: a file, and changes over it. */
export class LivePolicySet implements LivePolicies {
  readonly #sources: PolicySources

  /** `undefined` without a store that keeps versions. */
  readonly #changes: PolicyChanges | undefined

  constructor(sources: PolicySources) {
    this.#sources = sources
    this.#changes = sources.document && new PolicyChanges(sources, sources.document)
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
    return this.#changes !== undefined
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
   * @throws SluiceError when a name is unknown, or a value is no identity
   */
  countsOf(identity: NamedIdentity): readonly CountedKey[] {
    return countsOf(identity, this.#sources.versions)
  }

  /** The policies in force in this process; the store is not asked. */
  get state(): PolicyState {
    const { shared, versions } = this.#sources
    const { number, entries } = shared.layer
    const { kill } = versions.now
    const active = entries.filter((entry) => isActive(entry, Date.now()))
    const killedBy = this.#sources.killedByEnvironment ? 'environment' : 'change'
    return {
      version: this.version,
      number,
      kill,
      killedBy: kill === 'none' ? undefined : killedBy,
      entries: active.map((entry) => this.#shown(entry)),
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
    return this.#changeable().make(edit, options)
  }

  /**
   * Tells what a change would come to, and changes nothing.
   * @throws or rejects with a SluiceError as the change would
   */
  async preview(edit: PolicyEdit, { number }: { number?: number } = {}): Promise<Preview> {
    return this.#changeable().preview(edit, number)
  }

  /** The versions that the store keeps, the newest first: the last 100. */
  async history(): Promise<readonly VersionRecord[]> {
    return this.#changeable().document.records()
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

  #shown({ over, author: _author, ...entry }: KeptEntry): StatusEntry {
    const now = valueInFile(entry, this.#sources.file)
    return JSON.stringify(now) === JSON.stringify(over) ? entry : { ...entry, hides: now }
  }

  async #contentOf(version: string): Promise<PolicyFile> {
    if (version === this.version) return this.file
    const { file, layer, at } = recordOf(version, await this.history())
    return effective(file, layer, at)
  }

  #changeable(): PolicyChanges {
    if (this.#changes) return this.#changes
    throw new SluiceError(
      'SLUICE_OPTION_INVALID',
      'the policies have no store that keeps versions: give openPolicies({ file, store }) the store of the counts',
    )
  }
}
