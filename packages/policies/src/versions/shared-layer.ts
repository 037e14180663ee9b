import { controlled, type Documents, invalid } from '@sluice/core'
import type { PolicyFile } from '../file/policy-file.ts'
import type { Layer } from './layer.ts'
import type { Refused } from './version.ts'

/** The reason for a change, and its author. */
export interface ChangeNote {
  readonly author: string
  readonly reason: string
}

/** One set of policies that was applied: the file and its layer. */
export interface VersionRecord extends ChangeNote {
  /** The version: hash of the file, and revision of the layer. */
  readonly id: string
  readonly number: number
  readonly kind: 'file' | 'change' | 'rollback' | 'kill'
  /** Hash of the policies that applied. */
  readonly hash: string
  /** Milliseconds since 1970. */
  readonly at: number
  readonly file: PolicyFile
  readonly layer: Layer
}

/** The layer as stored. */
export interface SharedLayer {
  /** 0 if nobody has written it yet. */
  readonly revision: number
  readonly layer: Layer
  /** Hashes of the files that have a record, newest last. */
  readonly files: readonly string[]
}

/** A process that uses the policies. */
export interface Member {
  /** Identifies the process. */
  readonly id: string
  readonly version: string
  /** The version that it could not apply, and why. */
  readonly refused?: Refused | undefined
}

const layer: Layer = { number: 0, entries: [], kill: 'none' }
export const nothingShared: SharedLayer = { revision: 0, layer, files: [] }

/** Number of records that the log keeps. */
const maxVersions = 100
/** Number of files remembered as recorded: a rolling deploy runs two at once. */
const maxFiles = 10
/** Maximum wait for a store (ms). */
const deadlineMs = 1_000

/** The layer in a store's document, and its log. */
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

  /** @returns the shared layer; `undefined` if another process was faster */
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

  /** Newest first. */
  async records(): Promise<readonly VersionRecord[]> {
    const records = await controlled(deadlineMs, () => this.#documents.log(this.#name))
    return records.map((text): VersionRecord => JSON.parse(text))
  }

  /** Announces a process to the fleet for `ttlMs` ms; 0 removes it. */
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
 * Finds a version in the records. If a process did not make the changes itself, one record has its
 * file, and another has the changes.
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

/** Returns the file hash from the id of a version. */
export function fileOf(id: string): string {
  return id.slice(0, id.indexOf('.'))
}
