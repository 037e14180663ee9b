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
/** Time (ms) for which a new text must stay as it is: an editor may be writing it. */
const settleMs = 100
/** Interval (ms) at which a process without news reports that it runs. */
const announceMs = 5_000
/** Time (ms) after which a silent process is dropped. */
const memberTtlMs = 15_000

export interface SourceOptions {
  readonly observers: readonly VersionObservers[]
  readonly documents: Documents | undefined
  readonly name: string
  readonly fileName: string
  readonly readFile: () => Promise<string>
  /** The kill switch of the environment, which counts before the store's. */
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
  /** Tells this process from others. */
  readonly id: string = randomUUID()
  readonly killedBy: 'environment' | 'change'
  readonly #options: SourceOptions
  #file: ReadFile = { text: '', hash: '', value: {} }
  #shared: SharedLayer = nothingShared
  /** Time at which the next entry or override ends by itself. */
  #endsMs = Number.POSITIVE_INFINITY
  /** The file that was refused: its text, unless it is to be looked at again. */
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
    // Not all processes of a fleet that starts together ask together.
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

  /** The version that a file makes with a layer. @param file @default that of this process */
  versionWith(layer: Layer, file: ReadFile = this.#file): Version {
    const kill = this.#options.kill ?? layer.kill
    const content = effective(file.value, layer, Date.now())
    return new Version(`${file.hash}.${layer.number}`, content, kill)
  }

  /** The record of the version that the file of this process makes with a layer. */
  recordOf(kind: VersionRecord['kind'], layer: Layer, note: ChangeNote): VersionRecord {
    const { id, file } = this.versionWith(layer)
    const record = { id, number: layer.number, kind, hash: contentHash(file), ...note }
    return { ...record, at: Date.now(), file: this.file, layer }
  }

  /** Puts a layer in force that is newer than the one that is known. */
  take(shared: SharedLayer): void {
    if (shared.revision > this.#shared.revision) this.#takeOver(this.#file, shared)
  }

  /** Asks for the revision alone, and for the layer where it is another one. */
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
        `the store of the policies does not answer, so changes at run time do not arrive: ${errorText(error)}`,
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

  /** Reads the file; `undefined` while somebody writes it. */
  async #settledText(): Promise<string | undefined> {
    const { readFile } = this.#options
    const text = await readFile().catch(() => undefined)
    if (text === this.#file.text) return text
    if (text !== undefined && text === this.#refusedFile?.text) return text
    await sleep(settleMs, undefined, { ref: false })
    return (await readFile()) === text ? text : undefined
  }

  /** Puts a text in force that is new, or refuses it once. */
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

  /** Warns of new values of the file that changes hide. */
  #warnOfHidden(before: PolicyFile): void {
    const textIn = (file: PolicyFile, entry: KeptEntry) => JSON.stringify(valueInFile(entry, file))
    const hiding = this.#shared.layer.entries
      .filter((each) => isActive(each, Date.now()))
      .filter((each) => textIn(this.file, each) !== textIn(before, each))
      .map(({ policy, field, author = '?' }) => `${policy} ${field} (by ${quote(author)})`)
    if (hiding.length === 0) return
    warn(
      `the policies ${this.#options.fileName} have new values that changes hide: ${hiding.join(', ')}. ` +
        `Remove these changes, as in policies.remove({ policy, field }), to have the file in force`,
    )
  }

  /**
   * Takes the layer of the store, or gives the store back what it has lost. Numbers of layers only
   * grow, so a lower one is that of a store that has lost its data.
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

  /** Writes a record of this process' file, unless another process has done so. */
  async #recordFile(document: LayerDocument): Promise<void> {
    const { hash } = this.#file
    if (this.#shared.files.includes(hash) || fileOf(this.versions.now.id) !== hash) return
    const note = { author: 'file', reason: this.#options.fileName }
    const record = this.recordOf('file', this.#shared.layer, note)
    this.#shared = (await document.write(this.#shared, record)) ?? this.#shared
  }

  /** Tells the fleet what this process runs: at once where that is news. */
  async #announce(document: LayerDocument): Promise<void> {
    const report = { version: this.versions.now.id, refused: this.versions.refused }
    const text = JSON.stringify(report)
    if (text === this.#announced && Date.now() - this.#announcedMs < announceMs) return
    await document.announce(this.id, report, memberTtlMs)
    this.#announced = text
    this.#announcedMs = Date.now()
  }

  /** Puts a file and a layer in force. @returns whether this process could build them */
  #takeOver(file: ReadFile, shared: SharedLayer): boolean {
    const isBuilt = this.versions.put(this.versionWith(shared.layer, file))
    // The refused file may be right with other changes.
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
