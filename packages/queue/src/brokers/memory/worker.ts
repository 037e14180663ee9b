import { maxTimerMs } from '@sluice/core'
import type { BrokerWorker } from '../../broker.ts'
import type { Entry } from './job-table.ts'

interface MemoryWork {
  readonly concurrency: number
  /** The next job that is due. */
  take(): Entry | undefined
  /** Timer for the next job that is delayed. */
  nextAt(): number | undefined
  run(entry: Entry, signal: AbortSignal): Promise<void>
}

/** Runs jobs of the memory broker, several at once. */
export class MemoryWorker implements BrokerWorker {
  readonly #work: MemoryWork
  readonly #runs = new Set<Promise<void>>()
  readonly #abandoned: Promise<void>
  #letGo: () => void = () => undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #isWoken = false

  constructor(work: MemoryWork) {
    this.#work = work
    this.#abandoned = new Promise((resolve) => {
      this.#letGo = resolve
    })
    this.wake()
  }

  /** To be called when there may be a job to take. Never runs one within the call. */
  wake(): void {
    if (this.#isWoken || this.#isClosed) return
    this.#isWoken = true
    setImmediate(() => {
      this.#isWoken = false
      this.#fill()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await Promise.race([Promise.all(this.#runs), this.#abandoned])
  }

  abandon(): void {
    this.#letGo()
  }

  #fill(): void {
    if (this.#isClosed) return
    clearTimeout(this.#timer)
    while (this.#runs.size < this.#work.concurrency) {
      const entry = this.#work.take()
      if (!entry?.running) break
      const run = this.#work.run(entry, entry.running.signal)
      this.#runs.add(run)
      void run.finally(() => {
        this.#runs.delete(run)
        this.wake()
      })
    }
    this.#sleepUntilDue()
  }

  #sleepUntilDue(): void {
    const nextAt = this.#work.nextAt()
    if (nextAt === undefined || this.#runs.size >= this.#work.concurrency) return
    const delayMs = Math.min(Math.max(1, nextAt - Date.now()), maxTimerMs)
    this.#timer = setTimeout(() => this.wake(), delayMs).unref()
  }
}
