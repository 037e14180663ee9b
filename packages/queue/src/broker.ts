import { type ErrorCode, invalid } from '@sluice/core'
import type { Job, JobStatus, NewJob } from './job.ts'

/** The bounds of a queue. They are sent with each job, so a broker needs no set-up. */
export interface EnqueueTerms {
  /** Maximum number of waiting and running jobs. */
  readonly maxDepth: number
  /** Maximum number of one identity's waiting and running jobs. */
  readonly maxDepthPerIdentity: number
  /** Time (ms) for which a job's outcome and idempotency key are kept after its end. */
  readonly retentionMs: number
  readonly idempotency?: Idempotency | undefined
  /** Called for an expired job that is ended to make room. */
  readonly onExpired?: ((job: Pick<Job, 'id' | 'enqueuedAt'>) => void) | undefined
}

/** An idempotency key, within its identity, and the fingerprint of the first request with it. */
export interface Idempotency {
  readonly key: string
  readonly fingerprint: string
}

/**
 * - `enqueued`: it will be run
 * - `known`: a job with the same idempotency key and fingerprint is there, under this id
 * - `mismatch`: the idempotency key belongs to another fingerprint
 * - `full`: the bound of the queue or of the identity is reached
 */
export type Enqueued =
  | { readonly outcome: 'enqueued' | 'known'; readonly id: string }
  | { readonly outcome: 'mismatch' }
  | { readonly outcome: 'full'; readonly bound: 'queue' | 'identity' }

/**
 * - `cancelled`: it will not run
 * - `cancelling`: it is running, and its signal was aborted
 * - `finished`: it is too late
 * - `unknown`: there is no such job
 */
export type Cancelled = 'cancelled' | 'cancelling' | 'finished' | 'unknown'

/** Gauges of a queue. */
export interface Depth {
  /** Jobs that wait or run: those that were accepted and have not ended. */
  readonly depth: number
  readonly running: number
  /** Dead letters. */
  readonly dead: number
  /** Age of the oldest job that has not ended, in ms; 0 if there is none. */
  readonly oldestMs: number
  /**
   * Jobs accepted and ended per second while the queue was last busy, over at most half a minute.
   */
  readonly inPerSecond: number
  readonly outPerSecond: number
}

/** The result of a run for its job. */
export type Settlement = Outcome & {
  /** Called once the broker has applied the settlement; not if the job runs elsewhere meanwhile. */
  readonly onSettled?: (() => void) | undefined
}

type Outcome =
  | { readonly outcome: 'done'; readonly result: unknown }
  | { readonly outcome: 'retry'; readonly delayMs: number; readonly error: string }
  | { readonly outcome: 'dead'; readonly error: string }
  | { readonly outcome: 'cancelled' | 'expired' }
  /** `returned`: put back as if never taken; `postponed`: put back for later. */
  | { readonly outcome: 'returned' }
  | {
      readonly outcome: 'postponed'
      readonly delayMs: number
      /** True if no job of the worker can begin sooner, so that the broker need not deliver any. */
      readonly pausesWorker?: boolean
    }

/** The earlier runs of a job, as its broker knows them, and a function that records this run. */
export interface Delivery {
  /** True if any run of the job began. Then the job does not expire. */
  readonly hasBegun: boolean
  /** Number of runs that began and never ended: their workers died or were silent for too long. */
  readonly interrupted: number
  /**
   * Records that the run begins; call it just before the handler. Rejects if the broker cannot
   * record it.
   */
  begin(): Promise<void>
}

/**
 * Reason to stop a run whose job now runs elsewhere, because its worker was silent for too long.
 * The result is dropped.
 */
export class LeaseLost extends Error {
  override readonly name: string = 'LeaseLost'
  readonly code: ErrorCode = 'SLUICE_LEASE_LOST'
}

/**
 * Runs one job. Should never reject; if it does, the job becomes a dead letter.
 * @param signal aborted when the job is cancelled, or with `LeaseLost`
 */
export type RunJob = (job: Job, signal: AbortSignal, delivery: Delivery) => Promise<Settlement>

/** Options for a worker's runs. */
export interface WorkOptions {
  readonly concurrency: number
  /** Time (ms) after which a job of a silent worker runs elsewhere. */
  readonly leaseMs: number
  /** Maximum run time (ms), for brokers that need it. @default unknown */
  readonly timeoutMs?: number | undefined
  /** Called for a job that is taken back from a dead worker. */
  readonly onStalled: (id: string) => void
}

/** Takes jobs until it is closed. */
export interface BrokerWorker {
  /** Takes no more jobs, and resolves once the jobs taken so far have settled. */
  close(): Promise<void>
  /** Ends the wait of `close`. Unsettled jobs run elsewhere when their lease expires. */
  abandon(): void
}

/** A part of a list of jobs. */
export interface Page {
  readonly offset: number
  readonly limit: number
}

/** Port of a queue to its job storage. If a method rejects, the job is unchanged or will run. */
export interface Broker {
  /** True if several processes can share the broker. */
  readonly isShared: boolean
  /** Name of the queue. */
  readonly name: string
  /**
   * Maximum time (ms) for which a worker may hold a job that has not begun. After that, or as soon
   * as a longer wait is certain, the job is postponed. @default no limit
   */
  readonly maxHeldMs?: number
  enqueue(job: NewJob, terms: EnqueueTerms): Promise<Enqueued>
  /**
   * Finds the id of the job of an idempotency key within an identity; `undefined` for an unknown
   * key.
   */
  find(identity: string, idempotencyKey: string): Promise<string | undefined>
  /**
   * Reads the status of a job; `undefined` if the job is unknown or its outcome is no longer kept.
   */
  status(id: string): Promise<JobStatus | undefined>
  cancel(id: string): Promise<Cancelled>
  depth(): Promise<Depth>
  work(run: RunJob, options: WorkOptions): BrokerWorker
  /** Lists the dead letters, newest first. */
  deadLetters(page: Page): Promise<readonly JobStatus[]>
  /**
   * Runs a dead letter again, as if for the first time, regardless of bounds and age. Resolves to
   * false if there is none.
   */
  retry(id: string): Promise<boolean>
  /** Deletes a dead letter. Resolves to false if there is none. */
  forget(id: string): Promise<boolean>
  /** Closes connections and timers. Close the workers first. */
  close(): Promise<void>
}

/** Returns an option that is a broker; otherwise throws. */
export function brokerOf(broker: Broker): Broker {
  const found: unknown = broker
  if (typeof found === 'object' && found && 'enqueue' in found && 'work' in found) return broker
  const what = 'a broker, such as memoryBroker(), bullmqBroker({ … }) or rabbitmqBroker({ … })'
  throw invalid({ option: 'broker' }, broker, what)
}
