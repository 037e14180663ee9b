import { maxTimerMs, type Option, type OptionsOf, readOptions, textOption } from '@sluice/core'
import type { Broker, BrokerWorker } from '../../broker.ts'
import { brokerOver, type Transport } from '../job-broker.ts'
import { JobRuns } from '../job-runs.ts'
import { KeptTable } from '../options.ts'
import { MemoryJobTable } from './job-table.ts'

class MemoryBrokerTable extends KeptTable {
  /** Name of the queue in events and in the limits of its workers. @default 'jobs' */
  name?: Option<string, string> = textOption('jobs', /./, 'a text')
}

/** Options of `memoryBroker`. */
export interface MemoryBrokerOptions extends OptionsOf<MemoryBrokerTable> {}

/**
 * Keeps jobs in this process, for development and tests. The jobs end with the process.
 * @throws SluiceError if an option is unknown or out of range
 */
export function memoryBroker(options: MemoryBrokerOptions = {}): Broker {
  const { name, ...bounds } = readOptions(new MemoryBrokerTable(), options, 'memoryBroker')
  const table = new MemoryJobTable(bounds)
  const workers: MemoryWorker[] = []
  const wakeAll = (): void => {
    for (const worker of workers) worker.wake()
  }
  const transport: Transport = {
    deliver: async () => wakeAll(),
    async redeliver() {
      wakeAll()
      return true
    },
    work(terms, { concurrency }) {
      const worker = workerOf({ table, runs: new JobRuns(terms), concurrency, onEnd: wakeAll })
      workers.push(worker)
      return worker
    },
    close: async () => table.close(),
  }
  return brokerOver({ name, isShared: false }, () => ({ table, transport }))
}

interface MemoryWork {
  readonly table: MemoryJobTable
  readonly runs: JobRuns
  readonly concurrency: number
  /** Called when a run has ended, and its job may be due again. */
  onEnd(): void
}

interface MemoryWorker extends BrokerWorker {
  /** Call this when there may be a job to take. Never runs one synchronously. */
  wake(): void
}

/** Runs jobs of the memory broker concurrently. */
function workerOf({ table, runs, concurrency, onEnd }: MemoryWork): MemoryWorker {
  let running = 0
  let timer: NodeJS.Timeout | undefined
  let isWoken = false

  function wake(): void {
    if (isWoken || runs.isClosing) return
    isWoken = true
    setImmediate(() => {
      isWoken = false
      if (!runs.isClosing) fill()
    })
  }

  function fill(): void {
    clearTimeout(timer)
    while (running < concurrency) {
      const taken = table.take(Date.now())
      if (!taken) {
        sleepUntilDue()
        return
      }
      running += 1
      const run = runs.run(taken, taken.controller, async () => undefined)
      void runs.track(run).then(() => {
        running -= 1
        onEnd()
      })
    }
  }

  function sleepUntilDue(): void {
    if (table.nextAt === undefined) return
    const delayMs = Math.min(Math.max(1, table.nextAt - Date.now()), maxTimerMs)
    timer = setTimeout(wake, delayMs).unref()
  }

  wake()
  return {
    wake,
    abandon: () => runs.abandon(),
    async close() {
      clearTimeout(timer)
      await runs.close(async () => undefined)
    },
  }
}
