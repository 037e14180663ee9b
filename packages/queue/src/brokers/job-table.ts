import type { ControlCall } from '@sluice/core'
import type { Depth, Enqueued, EnqueueTerms, Page, Settlement } from '../broker.ts'
import type { JobStatus } from '../job.ts'
import type { StoredJob } from './stored-job.ts'

/** A job in its table. */
export interface FoundJob {
  readonly job: StoredJob
  readonly status: JobStatus
  /** True if any run of the job began. */
  readonly hasBegun: boolean
  /** Time of the end of the job, in milliseconds since 1970. */
  readonly endedAt?: number | undefined
}

/**
 * - `placed`: the job has a place, and must be delivered under this id. It may already be known,
 *   from a process that did not deliver it.
 * - `full`: some jobs may have expired, and must be ended to make room
 */
export type Placed =
  | { readonly outcome: 'placed'; readonly id: string; readonly isKnown: boolean }
  | {
      readonly outcome: 'full'
      readonly bound: 'queue' | 'identity'
      readonly hasExpired: boolean
    }
  | Exclude<Enqueued, { outcome: 'full' }>

/** An end of a job without a run. `withdrawn`: as if it had never existed. */
export type WaitingEnd = 'cancelled' | 'expired' | 'withdrawn'

/**
 * - `ended`: it was waiting, and has ended now
 * - `running`: it is running; if it is cancelled, its signal is aborted
 */
export type WaitingEnded = 'ended' | 'running' | 'finished' | 'unknown'

/** A job taken for a run. */
export interface TakenJob {
  readonly job: StoredJob
  /** Marks the job in the table while the run has it. */
  readonly token: string
  /** Runs that have ended. */
  readonly attempts: number
  /** Runs that began and never ended. */
  readonly interrupted: number
  readonly hasBegun: boolean
  /** True if the job was cancelled. */
  readonly isToStop: boolean
}

/** A run: its token, and an id that no other run has. */
export interface RunMark {
  readonly id: string
  readonly token: string
}

/** A settlement after which the job runs again. */
export type PutBack = Extract<Settlement, { outcome: 'returned' | 'postponed' | 'retry' }>

/** A settlement that ends the job. */
export type Ending = Exclude<Settlement, PutBack>

export function isPutBack(settlement: Settlement): settlement is PutBack {
  const { outcome } = settlement
  return outcome === 'returned' || outcome === 'postponed' || outcome === 'retry'
}

/** Keeps the jobs of a queue: their places, idempotency keys, states and outcomes. */
export interface JobTable {
  /** Takes a place for a job, unless its idempotency key belongs to another one. */
  place(job: StoredJob, terms: EnqueueTerms): Promise<Placed>
  /** Finds jobs that have expired, and never began. */
  expired(): Promise<readonly string[]>
  find(id: string, control?: ControlCall): Promise<FoundJob | undefined>
  findByKey(identity: string, idempotencyKey: string): Promise<string | undefined>
  depth(): Promise<Depth>
  deadLetters(page: Page): Promise<readonly FoundJob[]>
  endWaiting(job: StoredJob, how: WaitingEnd, control?: ControlCall): Promise<WaitingEnded>
  /** Queues a dead letter again. Resolves to the number of its next message; 0 if it is not one. */
  reopen(job: StoredJob, control: ControlCall): Promise<number>
  /** Forgets a dead letter. Resolves to false if it is not one. */
  forget(job: StoredJob, control: ControlCall): Promise<boolean>

  /** Records that a run begins. Resolves to false if the run does not have the job. */
  begin(job: StoredJob, run: RunMark): Promise<boolean>
  /** Ends a job by its run. Resolves to false if the run does not have the job. */
  end(job: StoredJob, run: RunMark, settlement: Ending): Promise<boolean>
  /**
   * Puts the job of a run back. Resolves to the number of its next message, to 0 for the same
   * message, or to −1 if the run does not have the job.
   * @param uncounts true if the run began but does not count
   */
  putBack(job: StoredJob, run: RunMark, back: PutBack, uncounts: boolean): Promise<number>
  /**
   * Returns for each run whether it must stop: `stop`, or `lost` to another run. Omitted by a table
   * that stops runs itself.
   */
  watch?(runs: readonly (readonly [id: string, token: string])[]): Promise<readonly string[]>
}
