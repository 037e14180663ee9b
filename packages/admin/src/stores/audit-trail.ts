import { randomUUID } from 'node:crypto'
import {
  type ControlCall,
  type Documents,
  errorText,
  type MaybePromise,
  warnOnce,
} from '@sluice/core'
import { ApiError, fromStore, unfinished } from './api-error.ts'

/** One step of an action. */
export interface AuditRecord {
  /** All records of an action have the same id. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly at: number
  readonly actor: string
  /** `keys.reset`, `queues.retry`, `policies.change`. */
  readonly action: string
  /** An action on keys or jobs is recorded before and after; a change of policies once. */
  readonly phase: 'begun' | 'done' | 'failed'
  readonly reason: string
  /** The key, queue or version of the action. Identities are digests. */
  readonly target?: AuditTarget | undefined
  /** The result of the action, or its error. */
  readonly result?: unknown
}

/** The policies, keys or clients that an action was about. */
export interface AuditTarget {
  readonly policy?: string | undefined
  readonly policies?: readonly string[] | undefined
  readonly digest?: string | undefined
  /** The key's names: `user`, `tenant and ip`. */
  readonly kind?: string | undefined
  readonly queue?: string | undefined
  readonly version?: string | undefined
}

/** A function that receives each step, in addition to the trail in the store. */
export type AuditSink = (record: AuditRecord) => MaybePromise<void>

/** With a colon, which no set of policies can have in its name. */
const name = 'admin:audit'
const maxRecords = 1_000
/** Processes that write concurrently must retry. */
const maxAttempts = 20

/** The records of actions on keys and jobs, in the store of the counts. */
export class AuditTrail {
  readonly #documents: () => Documents
  readonly #sink: AuditSink | undefined
  /** The current write: writes of one process do not conflict. */
  #writing: Promise<unknown> = Promise.resolve()

  constructor(documents: () => Documents, sink: AuditSink | undefined) {
    this.#documents = documents
    this.#sink = sink
  }

  /**
   * Records an action before and after.
   * @throws the error of the action, or an ApiError if it cannot be recorded: then the action is
   * not started
   */
  async recorded<T extends object>(
    action: Pick<AuditRecord, 'actor' | 'action' | 'reason' | 'target'>,
    act: () => Promise<T>,
  ): Promise<T> {
    const id = randomUUID()
    await this.#write({ id, at: Date.now(), ...action, phase: 'begun' })
    try {
      const result = await act()
      await this.#writeAfter({ id, at: Date.now(), ...action, phase: 'done', result })
      return result
    } catch (error) {
      const result = { error: errorText(error) }
      await this.#writeAfter({ id, at: Date.now(), ...action, phase: 'failed', result })
      throw unfinished(error)
    }
  }

  /** Reports a change to the sink that the store has already recorded. */
  async report(record: Omit<AuditRecord, 'id' | 'at'>): Promise<void> {
    try {
      await this.#sink?.({ id: randomUUID(), at: Date.now(), ...record })
    } catch (error) {
      warnLost(error)
    }
  }

  /** Newest first. */
  async records(): Promise<readonly AuditRecord[]> {
    const texts = await fromStore(() => this.#documents().log(name))
    return texts.map((text): AuditRecord => JSON.parse(text))
  }

  async #write(record: AuditRecord): Promise<void> {
    try {
      await this.#inTurn(JSON.stringify(record))
      await this.#sink?.(record)
    } catch (error) {
      warnLost(error)
      const headers = { 'Retry-After': '2' }
      const detail = 'The action cannot be recorded, so it was not started. Try again.'
      throw new ApiError(503, detail, { headers })
    }
  }

  /** The action is over: losing its record must not hide its result. */
  async #writeAfter(record: AuditRecord): Promise<void> {
    try {
      await this.#write(record)
    } catch (error) {
      warnLost(error)
    }
  }

  /** @throws ApiError if the store does not answer in time; a waiting record is dropped */
  async #inTurn(record: string): Promise<void> {
    let isLate = false
    const turn = this.#writing
      .catch(() => undefined)
      .then(() => (isLate ? undefined : fromStore((control) => this.#append(record, control))))
    this.#writing = turn
    try {
      await fromStore(() => turn)
    } finally {
      isLate = true
    }
  }

  async #append(record: string, control: ControlCall): Promise<void> {
    const documents = this.#documents()
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const revision = await documents.revision(name)
      const change = { revision, text: '', record, maxKept: maxRecords }
      if (await documents.write(name, change, control)) return
    }
    throw new ApiError(503, 'Too many actions at once. Try again.')
  }
}

function warnLost(error: unknown): void {
  warnOnce(`a record of the audit trail was lost: ${errorText(error)}`, 'audit trail')
}
