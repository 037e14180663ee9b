import {
  ControlCall,
  endsWithin,
  errorText,
  maxTimerMs,
  notify,
  SluiceError,
  warnOnce,
} from '@sluice/core'
import type {
  Broker,
  BrokerWorker,
  Cancelled,
  Depth,
  Enqueued,
  EnqueueTerms,
  Page,
  RunJob,
  WorkOptions,
} from '../broker.ts'
import { isOpen, type JobStatus, type NewJob } from '../job.ts'
import { BoundedCalls } from './bounded-calls.ts'
import type { RunTerms } from './job-runs.ts'
import type { FoundJob, JobTable } from './job-table.ts'
import { type StoredJob, storedJob } from './stored-job.ts'

/** Time (ms) that workers have to settle their runs when their broker closes. */
const patienceMs = 2_000

/** Delivers the jobs of a table to workers: what is special about a broker. */
export interface Transport {
  /**
   * Resolves when jobs can be delivered.
   * @throws SluiceError when they cannot
   */
  ready(): Promise<void>
  /** Delivers a job that has its place. */
  deliver(job: StoredJob): Promise<void>
  /** Takes back a place whose job was not delivered. */
  undo(job: StoredJob, claim: string): Promise<void>
  /** Has a dead letter run again. Resolves to false if another process was first. */
  redeliver(job: StoredJob, message: number): Promise<boolean>
  work(terms: RunTerms, options: WorkOptions): BrokerWorker
  close(): Promise<void>
}

/** A broker of a table and a transport. */
export interface BrokerParts {
  readonly name: string
  readonly isShared: boolean
  readonly maxHeldMs?: number
  /** The longest (ms) that a call may take. @default any time */
  readonly deadlineMs?: number
  readonly onError?: ((error: Error) => void) | undefined
  /** @param report reports an error that no caller gets */
  make(report: (error: unknown) => void): { table: JobTable; transport: Transport }
}

export function brokerFrom(parts: BrokerParts): Broker {
  return new JobBroker(parts)
}

class JobBroker implements Broker {
  readonly isShared: boolean
  readonly name: string
  readonly maxHeldMs?: number
  readonly #parts: BrokerParts
  readonly #table: JobTable
  readonly #transport: Transport
  readonly #calls: BoundedCalls | undefined
  readonly #workers = new Set<BrokerWorker>()
  #isClosed = false

  constructor(parts: BrokerParts) {
    const { name, isShared, maxHeldMs, deadlineMs } = parts
    this.name = name
    this.isShared = isShared
    if (maxHeldMs !== undefined) this.maxHeldMs = maxHeldMs
    this.#parts = parts
    this.#calls = deadlineMs === undefined ? undefined : new BoundedCalls(deadlineMs)
    const { table, transport } = parts.make(this.#report)
    this.#table = table
    this.#transport = transport
  }

  async enqueue(job: NewJob, terms: EnqueueTerms): Promise<Enqueued> {
    return this.#ask(async (call) => {
      await this.#transport.ready()
      if (call.isUnwanted) throw new Error('it was given up')
      const wanted = storedJob(job, terms)
      let placed = await this.#table.place(wanted, terms)
      if (placed.outcome === 'full' && placed.hasExpired && !call.isUnwanted) {
        await this.#endExpired(terms)
        placed = await this.#table.place(wanted, terms)
      }
      if (placed.outcome === 'full') return { outcome: 'full', bound: placed.bound }
      if (placed.outcome !== 'placed') return placed
      const { id, isKnown } = placed
      await this.#deliver({ ...wanted, id }, job.id, call)
      return { outcome: isKnown ? 'known' : 'enqueued', id }
    })
  }

  async find(identity: string, idempotencyKey: string): Promise<string | undefined> {
    return this.#ask(() => this.#table.findByKey(identity, idempotencyKey))
  }

  async status(id: string): Promise<JobStatus | undefined> {
    return this.#ask(async () => {
      const found = await this.#found(id)
      return found && hasExpired(found) ? { ...found.status, state: 'expired' } : found?.status
    })
  }

  async cancel(id: string): Promise<Cancelled> {
    return this.#ask(async (control) => {
      const found = await this.#found(id, control)
      if (!found) return 'unknown'
      if (found.status.state === 'cancelled') return 'cancelled'
      if (!isOpen(found.status) || hasExpired(found)) return 'finished'
      const end = await this.#table.endWaiting(found.job, 'cancelled', control)
      if (end === 'running') return 'cancelling'
      return end === 'ended' ? 'cancelled' : end
    })
  }

  async depth(): Promise<Depth> {
    return this.#ask(() => this.#table.depth())
  }

  work(run: RunJob, options: WorkOptions): BrokerWorker {
    this.#checkOpen()
    const terms = { table: this.#table, run, onError: this.#report }
    const worker = this.#transport.work(terms, options)
    this.#workers.add(worker)
    return worker
  }

  async deadLetters(page: Page): Promise<readonly JobStatus[]> {
    return this.#ask(async () => {
      if (page.limit === 0) return []
      return (await this.#table.deadLetters(page)).map(({ status }) => status)
    })
  }

  async retry(id: string): Promise<boolean> {
    return this.#ask(async (control) => {
      const found = await this.#found(id, control)
      if (found?.status.state !== 'failed') return false
      const message = await this.#table.reopen(found.job, control)
      if (message === 0 || control.isUnwanted) return false
      return this.#transport.redeliver(found.job, message)
    })
  }

  async forget(id: string): Promise<boolean> {
    return this.#ask(async (control) => {
      const found = await this.#found(id, control)
      return found?.status.state === 'failed' && this.#table.forget(found.job, control)
    })
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    const closing = Promise.all([...this.#workers].map((worker) => worker.close()))
    if (!(await endsWithin(closing, patienceMs))) {
      for (const worker of this.#workers) worker.abandon()
      await closing
    }
    await this.#transport.close()
  }

  /** Finds a job whose outcome is kept. */
  async #found(id: string, control?: ControlCall): Promise<FoundJob | undefined> {
    const found = await this.#table.find(id, control)
    return found && isForgotten(found) ? undefined : found
  }

  /** Ends jobs that expired before a run began, so that they hold no places. */
  async #endExpired({ onExpired }: EnqueueTerms): Promise<void> {
    const end = async (id: string): Promise<void> => {
      const found = await this.#table.find(id)
      if (!found || (await this.#table.endWaiting(found.job, 'expired')) !== 'ended') return
      onExpired?.(found.status)
    }
    await Promise.all((await this.#table.expired()).map(end))
  }

  /**
   * Delivers a job that has its place. After a timeout its client is told that the job may not
   * exist. Then it is kept only if others may have been told of it by its idempotency key.
   */
  async #deliver(job: StoredJob, claim: string, call: ControlCall): Promise<void> {
    if (call.isUnwanted) return this.#transport.undo(job, claim)
    try {
      await this.#transport.deliver(job)
    } catch (error) {
      await this.#transport.undo(job, claim).catch(this.#report)
      throw error
    }
    if (call.isUnwanted && !job.record) await this.#table.endWaiting(job, 'withdrawn')
  }

  async #ask<T>(work: (call: ControlCall) => Promise<T>): Promise<T> {
    this.#checkOpen()
    return this.#calls ? this.#calls.ask(work) : work(new ControlCall(maxTimerMs))
  }

  readonly #report = (error: unknown): void => {
    if (this.#isClosed) return
    const known = error instanceof Error ? error : new Error(errorText(error))
    if (this.#parts.onError) notify(this.#parts.onError, known)
    else warnOnce(`the queue '${this.name}': ${errorText(known)}`)
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new SluiceError('SLUICE_BROKER_CLOSED', 'the broker was closed')
  }
}

/** True if a job still waits, has never begun, and is past its `expiresAt`. */
function hasExpired({ job: { expiresAt }, status, hasBegun }: FoundJob): boolean {
  if (status.state !== 'pending' || hasBegun) return false
  return expiresAt !== undefined && expiresAt <= Date.now()
}

/** True if a job ended so long ago that its outcome is not kept. */
function isForgotten({ job, status, endedAt }: FoundJob): boolean {
  if (status.state === 'failed' || endedAt === undefined) return false
  return endedAt + job.retentionMs <= Date.now()
}
