import { knownFields, maxTimerMs } from '@sluice/core'
import type { Broker, BrokerWorker, WorkOptions } from '../../broker.ts'
import { brokerFrom, type Transport } from '../job-broker.ts'
import { JobRuns, type RunTerms } from '../job-runs.ts'
import { type KeptOptions, keptBounds, keptOptionNames } from '../options.ts'
import { MemoryJobTable } from './job-table.ts'

/** Options of `memoryBroker`. */
export interface MemoryBrokerOptions extends KeptOptions {
  /** Names the queue, in events and for the limits of its workers. @default 'jobs' */
  name?: string | undefined
}

/**
 * Keeps jobs in this process, for development and tests. The jobs end with the process.
 * @throws SluiceError when an option is unknown or out of range
 */
export function memoryBroker(options: MemoryBrokerOptions = {}): Broker {
  knownFields(options, 'memoryBroker', ['name', ...keptOptionNames])
  const table = new MemoryJobTable(keptBounds(options))
  const transport = new MemoryTransport(table)
  const name = options.name ?? 'jobs'
  return brokerFrom({ name, isShared: false, make: () => ({ table, transport }) })
}

/** Wakes the workers of this process. */
class MemoryTransport implements Transport {
  readonly #table: MemoryJobTable
  readonly #workers: MemoryWorker[] = []

  constructor(table: MemoryJobTable) {
    this.#table = table
  }

  async ready(): Promise<void> {
    // The jobs are in this process.
  }

  async deliver(): Promise<void> {
    for (const worker of this.#workers) worker.wake()
  }

  async undo(): Promise<void> {
    // A job that has its place is delivered.
  }

  async redeliver(): Promise<boolean> {
    await this.deliver()
    return true
  }

  work(terms: RunTerms, { concurrency }: WorkOptions): BrokerWorker {
    const onEnd = (): void => void this.deliver()
    const worker = new MemoryWorker(this.#table, new JobRuns(terms), { concurrency, onEnd })
    this.#workers.push(worker)
    return worker
  }

  async close(): Promise<void> {
    this.#table.close()
  }
}

interface MemoryWork {
  readonly concurrency: number
  /** Called when a run has ended, and its job may be due again. */
  onEnd(): void
}

/** Runs jobs of the memory broker, several at once. */
class MemoryWorker implements BrokerWorker {
  readonly #table: MemoryJobTable
  readonly #runs: JobRuns
  readonly #work: MemoryWork
  #running = 0
  #timer: NodeJS.Timeout | undefined
  #isWoken = false

  constructor(table: MemoryJobTable, runs: JobRuns, work: MemoryWork) {
    this.#table = table
    this.#runs = runs
    this.#work = work
    this.wake()
  }

  /** To be called when there may be a job to take. Never runs one within the call. */
  wake(): void {
    if (this.#isWoken || this.#runs.isClosing) return
    this.#isWoken = true
    setImmediate(() => {
      this.#isWoken = false
      this.#fill()
    })
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#runs.close(async () => undefined)
  }

  abandon(): void {
    this.#runs.abandon()
  }

  #fill(): void {
    if (this.#runs.isClosing) return
    clearTimeout(this.#timer)
    while (this.#running < this.#work.concurrency) {
      const taken = this.#table.take(Date.now())
      if (!taken) {
        this.#sleepUntilDue()
        return
      }
      this.#running += 1
      const run = this.#runs.run(taken.job, taken.controller, async () => undefined)
      this.#runs.track(run)
      void run.finally(() => {
        this.#running -= 1
        this.#work.onEnd()
      })
    }
  }

  #sleepUntilDue(): void {
    const nextAt = this.#table.nextAt
    if (nextAt === undefined) return
    const delayMs = Math.min(Math.max(1, nextAt - Date.now()), maxTimerMs)
    this.#timer = setTimeout(() => this.wake(), delayMs).unref()
  }
}
