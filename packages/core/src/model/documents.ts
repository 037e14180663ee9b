import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { ControlCall } from '../waiting/control-call.ts'

/** A text that processes share, and how often it has been changed. */
export interface SharedDocument {
  /** 1 for the first text, and one more with each change. */
  readonly revision: number
  readonly text: string
}

/** One change of a document, and its record. */
export interface DocumentChange {
  /** The revision that is to be replaced; 0: there is no document yet. */
  readonly revision: number
  readonly text: string
  /** The record of the change, which stands in the log exactly when the change was made. */
  readonly record: string
  /** Number of records that the log keeps: the newest ones. */
  readonly maxKept: number
}

/** A process, as it describes itself to the fleet. */
export interface FleetMember {
  readonly id: string
  readonly text: string
}

/** Documents with versions, each with a bounded log. A change and its record are one step. */
export interface Documents {
  /** Returns the revision of a document, 0 where there is none. It costs one small read. */
  revision(name: string): MaybePromise<number>
  read(name: string): MaybePromise<SharedDocument | undefined>
  /** @returns whether the change was made: not when the document has another revision by now */
  write(name: string, change: DocumentChange, control?: ControlCall): MaybePromise<boolean>
  /** Returns the records of a document, the newest one first. */
  log(name: string): MaybePromise<readonly string[]>
  /** Tells the others about this process, for `ttlMs` ms. */
  announce(name: string, member: FleetMember, ttlMs: number): MaybePromise<void>
  /** Returns the reports of processes that have not expired. */
  members(name: string): MaybePromise<readonly FleetMember[]>
}
