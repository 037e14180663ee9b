import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Documents, errorText, quote, warn, warnOnce } from '@sluice/core'
import type { PolicyFile } from './file/policy-file.ts'
import { parsePolicyFile, placesOf, readPolicyFile } from './reading/read-file.ts'
import {
  effective,
  isActive,
  type KeptEntry,
  type Kill,
  type Layer,
  nextEndMs,
  valueInFile,
} from './versions/layer.ts'
import {
  type ChangeNote,
  fileOf,
  LayerDocument,
  nothingShared,
  type SharedLayer,
  type VersionRecord,
} from './versions/shared-layer.ts'
import { contentHash, Version, type VersionObservers, VersionSwitch } from './versions/version.ts'

/** Interval (ms) at which the file and the store are read. */
const pollMs = 1_000
/** Time (ms) for which a new file must be stable: an editor may still be writing it. */
const settleMs = 100
/** Interval (ms) at which an unchanged process reports that it is running. */
const announceMs = 5_000
/** Time (ms) after which a silent process is dropped. */
const memberTtlMs = 15_000

export interface SourceOptions {
  readonly observers: readonly VersionObservers[]
  readonly documents: Documents | undefined
  readonly name: string
  readonly fileName: string
  readonly readFile: () => Promise<string>
  /** The kill switch from the environment, which takes precedence over the store's. */
  readonly kill: Kill | undefined
}

interface ReadFile {
  readonly text: string
  readonly hash: string
  readonly value: PolicyFile
}

/**
 * The sources of the policies: a file, and the layer of changes in the store. Both are read every
 * second.
 */
export class PolicySources {
  readonly versions: VersionSwitch
  /** The shared layer; `undefined` without a store that keeps documents. */
  readonly document: LayerDocument | undefined
  /** Identifies this process. */
  readonly id: string = randomUUID()
  readonly killedBy: 'environment' | 'change'
  readonly #options: SourceOptions
  #file: ReadFile = { text: '', hash: '', value: {} }
  #shared: SharedLayer = nothingShared
  /** Time at which the next entry or override expires. */
  #endsMs = Number.POSITIVE_INFINITY
  /** The text of the rejected file, unless it must be checked again. */
  #refusedFile: { readonly text?: string } | undefined
  #announced = ''
  #announcedMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #isReadingFile = false
  #asking: Promise<void> | undefined
  #isClosed = false

  constructor(options: SourceOptions) {
    this.#options = options
    this.killedBy = options.kill ? 'environment' : 'change'
    this.versions = new VersionSwitch(options.observers)
    this.document = options.documents && new LayerDocument(options.documents, options.name)
  }

  get file(): PolicyFile {
    return this.#file.value
  }

  get shared(): SharedLayer {
    return this.#shared
  }

  /** @throws SluiceError if the file is wrong */
  async open(): Promise<void> {
    const { fileName, readFile } = this.#options
    const text = await readFile()
    this.#takeOver(readFileOf(text, readPolicyFile(text, fileName)), nothingShared)
    await this.askStore()
    // Random, so that processes started together do not poll together.
    this.#timer = setTimeout(() => {
      this.#tick()
      this.#timer = setInterval(() => this.#tick(), pollMs).unref()
    }, pollMs * Math.random()).unref()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await this.document?.announce(this.id, { version: '' }, 0).catch(() => undefined)
  }

  /** Returns the version of a file with a layer. @param file @default this process's file */
  versionWith(layer: Layer, file: ReadFile = this.#file): Version {
    const kill = this.#options.kill ?? layer.kill
    const content = effective(file.value, layer, Date.now())
    return new Version(`${file.hash}.${layer.number}`, content, kill)
  }

  /** Returns the record of the version of this process's file with a layer. */
  recordOf(kind: VersionRecord['kind'], layer: Layer, note: ChangeNote): VersionRecord {
    const { id, file } = this.versionWith(layer)
    const record = { id, number: layer.number, kind, hash: contentHash(file), ...note }
    return { ...record, at: Date.now(), file: this.file, layer }
  }

  /** Applies a layer that is newer than the known one. */
  take(shared: SharedLayer): void {
    if (shared.revision > this.#shared.revision) this.#takeOver(this.#file, shared)
  }

  /** Reads the revision, and the layer only if the revision has changed. */
  async askStore(): Promise<void> {
    if (this.document) this.#asking ??= this.#ask(this.document)
    await this.#asking
  }

  async #ask(document: LayerDocument): Promise<void> {
    try {
      if ((await document.revision()) !== this.#shared.revision) await this.#catchUp(document)
      await this.#recordFile(document)
      await this.#announce(document)
    } catch (error) {
      warnOnce(
        `the store of the policies does not answer, so changes at run time are not received: ${errorText(error)}`,
        'policies store',
      )
    } finally {
      this.#asking = undefined
    }
  }

  #tick(): void {
    if (this.#isClosed) return
    void this.#lookAtFile()
    void this.askStore()
    if (Date.now() >= this.#endsMs) this.#takeOver(this.#file, this.#shared)
  }

  async #lookAtFile(): Promise<void> {
    if (this.#isReadingFile) return
    this.#isReadingFile = true
    try {
      const text = await this.#settledText()
      if (text !== undefined && !this.#isClosed) this.#takeText(text)
    } catch (error) {
      this.#refusedFile = {}
      this.versions.refuse(this.#options.fileName, errorText(error))
    } finally {
      this.#isReadingFile = false
    }
  }

  /** Reads the file; `undefined` while it is being written. */
  async #settledText(): Promise<string | undefined> {
    const { readFile } = this.#options
    const text = await readFile().catch(() => undefined)
    if (text === this.#file.text) return text
    if (text !== undefined && text === this.#refusedFile?.text) return text
    await sleep(settleMs, undefined, { ref: false })
    return (await readFile()) === text ? text : undefined
  }

  /** Applies new file contents, or rejects them once. */
  #takeText(text: string): void {
    const refused = this.#refusedFile
    if (text === refused?.text) return
    this.#refusedFile = undefined
    if (text === this.#file.text) {
      if (refused) this.versions.accept()
      return
    }
    const { fileName } = this.#options
    const { value, problems } = parsePolicyFile(text)
    const before = this.file
    if (!value) this.versions.refuse(fileName, placesOf(problems, fileName))
    const isTaken = value && this.#takeOver(readFileOf(text, value), this.#shared)
    if (isTaken) this.#warnOfHidden(before)
    else this.#refusedFile = { text }
  }

  /** Warns about new values in the file that changes hide. */
  #warnOfHidden(before: PolicyFile): void {
    const textIn = (file: PolicyFile, entry: KeptEntry) => JSON.stringify(valueInFile(entry, file))
    const hiding = this.#shared.layer.entries
      .filter((each) => isActive(each, Date.now()))
      .filter((each) => textIn(this.file, each) !== textIn(before, each))
      .map(({ policy, field, author = '?' }) => `${policy} ${field} (by ${quote(author)})`)
    if (hiding.length === 0) return
    warn(
      `the policies ${this.#options.fileName} have new values that are hidden by changes: ${hiding.join(', ')}. ` +
        `To use the file's values, remove these changes, as in policies.remove({ policy, field })`,
    )
  }

  /**
   * Takes the layer from the store, or restores a layer that the store has lost. Revisions only
   * grow, so a lower one means that the store has lost its data.
   */
  async #catchUp(document: LayerDocument): Promise<void> {
    const found = await document.read()
    const { layer } = this.#shared
    if (found.layer.number >= layer.number) {
      if (JSON.stringify(found.layer) === JSON.stringify(layer)) this.#shared = found
      else this.#takeOver(this.#file, found)
      return
    }
    const note = { author: 'recovery', reason: 'the store had lost the changes' }
    const record = this.recordOf('change', layer, note)
    this.#shared = (await document.write(found, record)) ?? this.#shared
  }

  /** Records this process's file, unless another process has done so. */
  async #recordFile(document: LayerDocument): Promise<void> {
    const { hash } = this.#file
    if (this.#shared.files.includes(hash) || fileOf(this.versions.now.id) !== hash) return
    const note = { author: 'file', reason: this.#options.fileName }
    const record = this.recordOf('file', this.#shared.layer, note)
    this.#shared = (await document.write(this.#shared, record)) ?? this.#shared
  }

  /** Reports this process's version to the fleet, at once if it is new. */
  async #announce(document: LayerDocument): Promise<void> {
    const report = { version: this.versions.now.id, refused: this.versions.refused }
    const text = JSON.stringify(report)
    if (text === this.#announced && Date.now() - this.#announcedMs < announceMs) return
    await document.announce(this.id, report, memberTtlMs)
    this.#announced = text
    this.#announcedMs = Date.now()
  }

  /** Applies a file and a layer. @returns whether this process could build them */
  #takeOver(file: ReadFile, shared: SharedLayer): boolean {
    const isBuilt = this.versions.put(this.versionWith(shared.layer, file))
    // The rejected file may be valid with other changes.
    if (this.#refusedFile && shared !== this.#shared) this.#refusedFile = {}
    this.#shared = shared
    if (isBuilt) this.#file = file
    if (isBuilt && !this.#refusedFile) this.versions.accept()
    this.#endsMs = nextEndMs(this.file, shared.layer, Date.now())
    return isBuilt
  }
}

function readFileOf(text: string, value: PolicyFile): ReadFile {
  return { text, hash: contentHash(value), value }
}
