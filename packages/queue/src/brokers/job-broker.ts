import {
  ControlCall,
  endsWithin,
  errorText,
  joined,
  maxTimerMs,
  notify,
  SluiceError,
  warnOnce,
} from '@sluice/core'
import type { Broker, BrokerWorker, EnqueueTerms, WorkOptions } from '../broker.ts'
import { isOpen } from '../job.ts'
import { BoundedCalls } from './bounded-calls.ts'
import type { RunTerms } from './job-runs.ts'
import type { FoundJob, JobTable } from './job-table.ts'
import type { BrokerObservers } from './options.ts'
import { type StoredJob, storedJob } from './stored-job.ts'

/** Time (ms) that workers have to settle their runs when their broker closes. */
const patienceMs = 2_000

/** Delivers the jobs of a table to workers. This is the part that differs between brokers. */
export interface Transport {
  /**
   * Resolves when jobs can be delivered.
   * @throws SluiceError if they cannot
   */
  ready?(): Promise<void>
  /** Delivers a job that has its place. */
  deliver(job: StoredJob): Promise<void>
  /** Takes back a place whose job was not delivered. */
  undo?(job: StoredJob, claim: string): Promise<void>
  /** Runs a dead letter again. Resolves to false if another process was faster. */
  redeliver(job: StoredJob, message: number): Promise<boolean>
  work(terms: RunTerms, options: WorkOptions): BrokerWorker
  close(): Promise<void>
}

/** Traits of a broker. */
interface BrokerTraits extends Pick<Broker, 'name' | 'isShared' | 'maxHeldMs'> {
  /** Maximum duration of a call (ms). @default no limit */
  readonly deadlineMs?: number
  readonly observers?: readonly BrokerObservers[]
}

/** Reports an error that no caller receives. */
export type Report = (error: unknown) => void

/** Creates a broker from a job table and a transport. */
export function brokerOver(
  { deadlineMs, observers = [], ...traits }: BrokerTraits,
  make: (report: Report) => { table: JobTable; transport: Transport },
): Broker {
  const { table, transport } = make(report)
  const calls = deadlineMs === undefined ? undefined : new BoundedCalls(deadlineMs)
  const workers = new Set<BrokerWorker>()
  const onError = joined(observers.map((each) => each.onError?.bind(each)))
  let isClosed = false

  function report(error: unknown): void {
    if (isClosed) return
    const known = error instanceof Error ? error : new Error(errorText(error))
    if (onError) notify(onError, known)
    else warnOnce(`the queue '${traits.name}': ${errorText(known)}`)
  }

  function checkOpen(): void {
    if (isClosed) throw new SluiceError('SLUICE_BROKER_CLOSED', 'the broker was closed')
  }

  async function ask<T>(work: (call: ControlCall) => Promise<T>): Promise<T> {
    checkOpen()
    return calls ? calls.ask(work) : work(new ControlCall(maxTimerMs))
  }

  /** Finds a job whose outcome is kept. */
  async function findKept(id: string, control?: ControlCall): Promise<FoundJob | undefined> {
    const found = await table.find(id, control)
    return found && isForgotten(found) ? undefined : found
  }

  /** Ends jobs that expired before a run began, to free their places. */
  async function endExpired({ onExpired }: EnqueueTerms): Promise<void> {
    const end = async (id: string): Promise<void> => {
      const found = await table.find(id)
      if (!found || (await table.endWaiting(found.job, 'expired')) !== 'ended') return
      onExpired?.(found.status)
    }
    await Promise.all((await table.expired()).map(end))
  }

  /**
   * Delivers a job that has a place. After a timeout the client is informed that the job may not
   * exist. Then the job is kept only if others may find it by its idempotency key.
   */
  async function deliver(job: StoredJob, claim: string, call: ControlCall): Promise<void> {
    if (call.isUnwanted) return transport.undo?.(job, claim)
    try {
      await transport.deliver(job)
    } catch (error) {
      await transport.undo?.(job, claim).catch(report)
      throw error
    }
    if (call.isUnwanted && !job.record) await table.endWaiting(job, 'withdrawn')
  }

  return {
    ...traits,
    find: (identity, key) => ask(() => table.findByKey(identity, key)),
    depth: () => ask(() => table.depth()),

    enqueue: (job, terms) =>
      ask(async (call) => {
        await transport.ready?.()
        if (call.isUnwanted) throw new Error('it was abandoned')
        const wanted = storedJob(job, terms)
        let placed = await table.place(wanted, terms)
        if (placed.outcome === 'full' && placed.hasExpired && !call.isUnwanted) {
          await endExpired(terms)
          placed = await table.place(wanted, terms)
        }
        if (placed.outcome === 'full') return { outcome: 'full', bound: placed.bound }
        if (placed.outcome !== 'placed') return placed
        const { id, isKnown } = placed
        await deliver({ ...wanted, id }, job.id, call)
        return { outcome: isKnown ? 'known' : 'enqueued', id }
      }),

    status: (id) =>
      ask(async () => {
        const found = await findKept(id)
        return found && hasExpired(found) ? { ...found.status, state: 'expired' } : found?.status
      }),

    cancel: (id) =>
      ask(async (control) => {
        const found = await findKept(id, control)
        if (!found) return 'unknown'
        if (found.status.state === 'cancelled') return 'cancelled'
        if (!isOpen(found.status) || hasExpired(found)) return 'finished'
        const end = await table.endWaiting(found.job, 'cancelled', control)
        if (end === 'running') return 'cancelling'
        return end === 'ended' ? 'cancelled' : end
      }),

    work(run, options) {
      checkOpen()
      const worker = transport.work({ table, run, onError: report }, options)
      workers.add(worker)
      return worker
    },

    deadLetters: (page) =>
      ask(async () => {
        if (page.limit === 0) return []
        return (await table.deadLetters(page)).map(({ status }) => status)
      }),

    retry: (id) =>
      ask(async (control) => {
        const found = await findKept(id, control)
        if (found?.status.state !== 'failed') return false
        const message = await table.reopen(found.job, control)
        return message > 0 && !control.isUnwanted && transport.redeliver(found.job, message)
      }),

    forget: (id) =>
      ask(async (control) => {
        const found = await findKept(id, control)
        return found?.status.state === 'failed' && table.forget(found.job, control)
      }),

    async close() {
      if (isClosed) return
      isClosed = true
      const closing = Promise.all([...workers].map((worker) => worker.close()))
      if (!(await endsWithin(closing, patienceMs))) {
        for (const worker of workers) worker.abandon()
        await closing
      }
      await transport.close()
    },
  }
}

/** True if a job still waits, has never begun, and is past its `expiresAt`. */
function hasExpired({ job: { expiresAt }, status, hasBegun }: FoundJob): boolean {
  if (status.state !== 'pending' || hasBegun) return false
  return expiresAt !== undefined && expiresAt <= Date.now()
}

/** True if a job ended so long ago that its outcome is no longer kept. */
function isForgotten({ job, status, endedAt }: FoundJob): boolean {
  if (status.state === 'failed' || endedAt === undefined) return false
  return endedAt + job.retentionMs <= Date.now()
}
