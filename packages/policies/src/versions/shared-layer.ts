import { controlled, type Documents, invalid } from '@sluice/core'
import type { PolicyFile } from '../file/policy-file.ts'
import type { Layer } from './layer.ts'
import type { Refused } from './version.ts'

/** The reason of a change, and its author. */
export interface ChangeNote {
  readonly author: string
  readonly reason: string
}

/** One set of policies that was in force: the file, and the layer over it. */
export interface VersionRecord extends ChangeNote {
  /** The version: hash of the file, and number of the layer. */
  readonly id: string
  readonly number: number
  readonly kind: 'file' | 'change' | 'rollback' | 'kill'
  /** Hash of the policies that were in force. */
  readonly hash: string
  /** Milliseconds since 1970. */
  readonly at: number
  readonly file: PolicyFile
  readonly layer: Layer
}

/** The layer as a store has it. */
export interface SharedLayer {
  /** 0: nobody has written it yet. */
  readonly revision: number
  readonly layer: Layer
  /** Hashes of the files that have a record, the newest last. */
  readonly files: readonly string[]
}

/** A process that uses the policies. */
export interface Member {
  /** Tells a process from others. */
  readonly id: string
  readonly version: string
  /** The version that it could not build, and why. */
  readonly refused?: Refused | undefined
}

const layer: Layer = { number: 0, entries: [], kill: 'none' }
export const nothingShared: SharedLayer = { revision: 0, layer, files: [] }

/** Records that the log keeps. */
const maxVersions = 100
/** Files that are remembered as recorded: a rolling deploy runs two at once. */
const maxFiles = 10
/** The longest that a store is waited for, in ms. */
const deadlineMs = 1_000

/** The layer in the document of a store, and its log. */
export class LayerDocument {
  readonly #documents: Documents
  readonly #name: string

  constructor(documents: Documents, name: string) {
    this.#documents = documents
    this.#name = name
  }

  revision(): Promise<number> {
    return controlled(deadlineMs, () => this.#documents.revision(this.#name))
  }

  async read(): Promise<SharedLayer> {
    const document = await controlled(deadlineMs, () => this.#documents.read(this.#name))
    if (!document) return nothingShared
    const { layer, files }: Omit<SharedLayer, 'revision'> = JSON.parse(document.text)
    return { revision: document.revision, layer, files }
  }

  /** @returns what is shared now; `undefined` when somebody else was first */
  async write(before: SharedLayer, record: VersionRecord): Promise<SharedLayer | undefined> {
    const { layer } = record
    const hash = fileOf(record.id)
    const files = [...before.files.filter((known) => known !== hash), hash].slice(-maxFiles)
    const change = {
      revision: before.revision,
      text: JSON.stringify({ layer, files }),
      record: JSON.stringify(record),
      maxKept: maxVersions,
    }
    const isWritten = await controlled(deadlineMs, (control) =>
      this.#documents.write(this.#name, change, control),
    )
    return isWritten ? { revision: before.revision + 1, layer, files } : undefined
  }

  /** The newest record first. */
  async records(): Promise<readonly VersionRecord[]> {
    const records = await controlled(deadlineMs, () => this.#documents.log(this.#name))
    return records.map((text): VersionRecord => JSON.parse(text))
  }

  /** Tells the fleet about a process for `ttlMs` ms; 0 forgets it. */
  announce(id: string, report: Omit<Member, 'id'>, ttlMs: number): Promise<void> {
    const member = { id, text: JSON.stringify(report) }
    return controlled(deadlineMs, () => this.#documents.announce(this.#name, member, ttlMs))
  }

  async members(): Promise<readonly Member[]> {
    const members = await controlled(deadlineMs, () => this.#documents.members(this.#name))
    return members.map(({ id, text }): Member => ({ id, ...JSON.parse(text) }))
  }
}

/**
 * Finds a version in the records. Of a process that did not make the changes itself, one record has
 * the file, and another one has the changes.
 * @throws SluiceError if no record has it
 */
export function recordOf(version: string, records: readonly VersionRecord[]): VersionRecord {
  const known = records.find(({ id }) => id === version)
  if (known) return known
  const hash = fileOf(version)
  const ofFile = records.find(({ id }) => fileOf(id) === hash)
  const ofLayer = records.find(({ number }) => version === `${hash}.${number}`)
  if (ofFile && ofLayer) return { ...ofLayer, id: version, file: ofFile.file }
  throw invalid({ option: 'version' }, version, 'a version that history() lists')
}

/** The hash of the file in the id of a version. */
export function fileOf(id: string): string {
  return id.slice(0, id.indexOf('.'))
}
