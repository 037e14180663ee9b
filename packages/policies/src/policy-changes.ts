import { SluiceError } from '@sluice/core'
import type { PolicyFile } from './file/policy-file.ts'
import type { PolicySources } from './policy-sources.ts'
import { ruleFaults } from './reading/rules.ts'
import { type Difference, differences } from './versions/diff.ts'
import {
  type ChangeOptions,
  checkNote,
  conflict,
  edited,
  kindOf,
  type PolicyEdit,
} from './versions/edit.ts'
import { isActive, type Layer } from './versions/layer.ts'
import { type LayerDocument, recordOf } from './versions/shared-layer.ts'
import type { Version } from './versions/version.ts'

/** Attempts to write one change that nobody contradicts. */
const maxAttempts = 3

/** The outcome of a change that was not made. */
export interface Preview {
  /** The version that it would make. */
  readonly version: string
  /** The policies that would be in force. */
  readonly file: PolicyFile
  readonly differences: readonly Difference[]
}

interface Planned {
  readonly layer: Layer
  readonly version: Version
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
    checkNote(options)
    const { author, reason } = options
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
  async #planned(edit: PolicyEdit, { number, author }: Partial<ChangeOptions>): Promise<Planned> {
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
