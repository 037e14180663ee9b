import type { Job as BullmqJob, Worker } from 'bullmq'
import type { BrokerWorker, WorkOptions } from '../../broker.ts'
import { infrastructureRetryMs, JobRuns, type RunTerms, repeat } from '../job-runs.ts'
import type { PutBack } from '../job-table.ts'
import { readJob, scriptJob } from '../redis/job-fields.ts'
import type { RedisJobTable } from '../redis/job-table.ts'
import { type RunScript, texts } from '../redis/scripts.ts'
import type { BullmqConnection } from './connection.ts'
import type { ScriptName } from './scripts.ts'

/** The part of BullMQ that Sluice uses, loaded on first use because it is an optional peer. */
export type Bullmq = typeof import('bullmq')

/** BullMQ must not give up interrupted jobs: our worker counts interruptions and does that. */
const stallsOfBullmq = 1_000_000

const sweepMs = 30_000

export interface BullmqWork {
  readonly terms: RunTerms
  readonly options: WorkOptions
  readonly queue: { readonly name: string; readonly prefix: string }
  readonly table: RedisJobTable
  readonly script: RunScript<ScriptName>
  /** Opens the queue, which may not be open yet. */
  open(): Promise<{ readonly bullmq: Bullmq; readonly connected: BullmqConnection }>
}

/** Runs jobs delivered by BullMQ. Our scripts end them; BullMQ puts them back. */
export class BullmqWorker implements BrokerWorker {
  readonly #work: BullmqWork
  readonly #runs: JobRuns
  readonly #opening: Promise<RenewingWorker>
  readonly #stopSweeping: () => void
  #isShared = false

  constructor(work: BullmqWork) {
    this.#work = work
    this.#runs = new JobRuns(work.terms)
    this.#opening = this.#open()
    this.#opening.catch(work.terms.onError)
    work.table.sweep().catch(work.terms.onError)
    this.#stopSweeping = repeat(sweepMs, () => work.table.sweep(), work.terms.onError)
  }

  async #open(): Promise<RenewingWorker> {
    const { options, queue, terms } = this.#work
    const { bullmq, connected } = await this.#work.open()
    this.#isShared = connected.isShared
    const process = (native: BullmqJob, token = ''): Promise<never> => {
      return this.#process(bullmq, native, token)
    }
    const worker = new (renewing(bullmq))(queue.name, process, {
      connection: connected.ofWorkers,
      prefix: queue.prefix,
      concurrency: options.concurrency,
      lockDuration: options.leaseMs,
      stalledInterval: Math.max(1, Math.floor(options.leaseMs / 2)),
      maxStalledCount: stallsOfBullmq,
      // The worker restarts after a connection error.
      runRetryDelay: infrastructureRetryMs,
    })
    worker.on('error', terms.onError)
    worker.on('stalled', (id) => options.onStalled(id))
    return worker
  }

  async close(): Promise<void> {
    // A worker that could not be opened was already reported, and has nothing to close.
    await this.#runs.close(async () => (await this.#opening.catch(() => undefined))?.close())
    this.#stopSweeping()
  }

  abandon(): void {
    this.#runs.abandon()
    this.#opening.then(
      (worker) => this.#disconnect(worker),
      () => undefined,
    )
  }

  #disconnect(worker: RenewingWorker): void {
    void worker.stopRenewing()
    const backend = worker.getBackend()
    backend.close(true).catch(this.#work.terms.onError)
    // BullMQ may already be closing its connection.
    const shared = this.#isShared ? undefined : backend.client
    for (const client of [shared, backend.blockingClient]) {
      client?.then(
        (connection) => connection.disconnect(),
        () => undefined,
      )
    }
  }

  async #process(bullmq: Bullmq, native: BullmqJob, token: string): Promise<never> {
    const job = readJob(native.id ?? '', native.data)
    const take = (): Promise<unknown> => this.#work.script('bullmq/take', { job: scriptJob(job) })
    const reply = await this.#runs.insist(take)
    if (reply !== undefined) {
      const [attempts = 0, interrupted = 0, began, flag] = texts(reply).map(Number)
      const taken = { job, token, attempts, interrupted, hasBegun: began === 1 }
      const controller = new AbortController()
      await this.#runs.run({ ...taken, isToStop: flag === 1 }, controller, async (back) => {
        await this.#runs.insist(() => moveBack(native, token, back))
      })
    }
    // BullMQ does not touch a job after this error.
    throw new bullmq.DelayedError()
  }
}

/** Makes BullMQ put a job back, unless the job runs elsewhere meanwhile. */
async function moveBack(native: BullmqJob, token: string, back: PutBack): Promise<void> {
  try {
    if (back.outcome === 'returned') await native.moveToWait(token)
    else await native.moveToDelayed(Date.now() + back.delayMs, token)
  } catch (error) {
    if (!isLockLost(error)) throw error
  }
}

/** BullMQ error codes: no such job, no lock, not active, locked by another worker. */
function isLockLost(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? Number(error.code) : 0
  return [-1, -2, -3, -6].includes(code)
}

interface RenewingWorker extends Worker {
  stopRenewing(): Promise<void>
}

/**
 * A worker that renews no locks after a failed close: BullMQ's never ends if it never reached
 * Redis.
 */
function renewing({ Worker }: Bullmq) {
  return class extends Worker implements RenewingWorker {
    stopRenewing(): Promise<void> {
      return this.lockManager.close()
    }
  }
}
