import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { ControlCall } from '../waiting/control-call.ts'

/** A document shared by processes, and its revision. */
export interface SharedDocument {
  /** 1 at first, and one more with each change. */
  readonly revision: number
  readonly text: string
}

/** One change of a document, and its record. */
export interface DocumentChange {
  /** The revision to replace; 0 if there is no document yet. */
  readonly revision: number
  readonly text: string
  /** The record of the change, which is in the log if and only if the change was made. */
  readonly record: string
  /** Number of records that the log keeps, newest first. */
  readonly maxKept: number
}

/** A process's description of itself, for the fleet. */
export interface FleetMember {
  readonly id: string
  readonly text: string
}

/** Documents with versions, each with a bounded log. A change and its record are one step. */
export interface Documents {
  /** Returns the revision of a document, or 0 if there is none. It costs one small read. */
  revision(name: string): MaybePromise<number>
  read(name: string): MaybePromise<SharedDocument | undefined>
  /** @returns whether the change was made: not if the document has another revision by now */
  write(name: string, change: DocumentChange, control?: ControlCall): MaybePromise<boolean>
  /** Returns the records of a document, newest first. */
  log(name: string): MaybePromise<readonly string[]>
  /** Announces this process to the others, for `ttlMs` ms. */
  announce(name: string, member: FleetMember, ttlMs: number): MaybePromise<void>
  /** Returns the reports of processes that have not expired. */
  members(name: string): MaybePromise<readonly FleetMember[]>
}
