import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { MaybePromise } from '@sluice/core'
import type {
  Broker,
  BrokerWorker,
  EnqueueTerms,
  Job,
  JobState,
  JobStatus,
  NewJob,
  RunJob,
  Settlement,
} from '@sluice/queue'
import { like, same, until } from '../assertions.ts'

/** A broker for one test, with its own empty queue. */
export interface OpenedBroker {
  readonly broker: Broker
  /** Opens another broker of the same queue, as in another process. @default the broker itself */
  openTwin?(): MaybePromise<Broker>
  /** Releases everything else that was opened, after the broker is closed. */
  close?(): MaybePromise<unknown>
}

/** Tests of a broker, by name. */
export type BrokerCases = Readonly<Record<string, (bench: BrokerBench) => Promise<void>>>

export const done: Settlement = { outcome: 'done', result: null }

/** Terms that no test reaches. */
export const roomy: EnqueueTerms = {
  maxDepth: 1_000,
  maxDepthPerIdentity: 1_000,
  retentionMs: 60_000,
}

export function newJob(fields: Partial<NewJob> = {}): NewJob {
  const job = { id: randomUUID(), identity: 'user:1', payload: { page: 1 } }
  return { ...job, enqueuedAt: Date.now(), ...fields }
}

/** A broker in one test, with its workers and helpers for tests. */
export class BrokerBench {
  readonly broker: Broker
  readonly #opened: OpenedBroker
  readonly #waitMs: number
  readonly #workers: BrokerWorker[] = []
  readonly #twins: Broker[] = []

  constructor(opened: OpenedBroker, waitMs: number) {
    this.broker = opened.broker
    this.#opened = opened
    this.#waitMs = waitMs
  }

  /** Another broker of the same queue; the broker itself if it cannot be shared. */
  async twin(): Promise<Broker> {
    const twin = await this.#opened.openTwin?.()
    if (twin) this.#twins.push(twin)
    return twin ?? this.broker
  }

  work(run: RunJob, concurrency = 5): BrokerWorker {
    const options = { concurrency, leaseMs: 5_000, onStalled: () => undefined }
    const worker = this.broker.work(run, options)
    this.#workers.push(worker)
    return worker
  }

  /**
   * Ends each run with the next settlement, and all later runs with the last one. Returns the runs.
   */
  settling(...settlements: readonly Settlement[]): Job[] {
    const runs: Job[] = []
    this.work(async (job) => {
      runs.push(job)
      return settlements[Math.min(runs.length, settlements.length) - 1] ?? { outcome: 'returned' }
    })
    return runs
  }

  async enqueued(job: NewJob = newJob(), terms: EnqueueTerms = roomy): Promise<NewJob> {
    const answer = await this.broker.enqueue(job, terms)
    same(answer, { outcome: 'enqueued', id: job.id }, 'a job is enqueued under its id')
    return job
  }

  async has(fields: Partial<JobStatus> & Pick<JobStatus, 'id'>, promise: string): Promise<void> {
    like(await this.broker.status(fields.id), fields, promise)
  }

  reaches(id: string, state: JobState): Promise<void> {
    return this.until(`the job is ${state}`, async () => {
      return (await this.broker.status(id))?.state === state
    })
  }

  /** Waits, in real time, until a condition holds. */
  until(promise: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    return until(promise, holds, this.#waitMs)
  }

  /** Closes everything. A run that never ends is abandoned. */
  async end(): Promise<void> {
    const closing = this.#workers.map((worker) => worker.close())
    await this.#within(Promise.all(closing))
    for (const worker of this.#workers) worker.abandon()
    const brokers = [...this.#twins, this.broker]
    await this.#within(Promise.all(brokers.map((broker) => broker.close())))
    await this.#opened.close?.()
  }

  async #within(work: Promise<unknown>): Promise<void> {
    const over = new AbortController()
    const timer = sleep(this.#waitMs, undefined, { signal: over.signal }).catch(() => undefined)
    await Promise.race([work, timer]).finally(() => over.abort())
  }
}
