import type { BrokerWorker } from '@sluice/queue'

/** The jobs of a broker, as seen by its workers. */
export interface WaitingJobs {
  /** Takes the next job that is due, and returns its run. */
  take(): Promise<void> | undefined
  /** The time (ms since 1970) at which the next job is due; `Infinity` for none. */
  nextAt(): number
}

/** Runs the jobs of a broker, several at once. */
export class ArrayWorker implements BrokerWorker {
  readonly #concurrency: number
  readonly #jobs: WaitingJobs
  readonly #running = new Set<Promise<void>>()
  readonly #abandoned: Promise<void>
  #abandon = (): void => undefined
  #timer: NodeJS.Timeout | undefined
  #isClosing = false

  constructor(concurrency: number, jobs: WaitingJobs) {
    this.#concurrency = concurrency
    this.#jobs = jobs
    this.#abandoned = new Promise((resolve) => {
      this.#abandon = resolve
    })
  }

  /** Takes as many jobs as allowed, and checks again when the next one is due. */
  wake(): void {
    clearTimeout(this.#timer)
    while (!this.#isClosing && this.#running.size < this.#concurrency) {
      const run = this.#jobs.take()
      if (!run) {
        this.#wakeAt(this.#jobs.nextAt())
        break
      }
      const ended = run.finally(() => {
        this.#running.delete(ended)
        this.wake()
      })
      this.#running.add(ended)
    }
  }

  #wakeAt(dueAt: number): void {
    if (dueAt === Number.POSITIVE_INFINITY) return
    const delayMs = Math.min(dueAt - Date.now(), 2 ** 31 - 1)
    this.#timer = setTimeout(() => this.wake(), delayMs)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    clearTimeout(this.#timer)
    await Promise.race([Promise.all(this.#running), this.#abandoned])
  }

  abandon(): void {
    this.#abandon()
  }
}
