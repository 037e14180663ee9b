import { randomUUID } from 'node:crypto'
import { errorText, sleep } from '@sluice/core'
import { LeaseLost, type RunJob, type Settlement } from '../broker.ts'
import { isPutBack, type JobTable, type PutBack, type TakenJob } from './job-table.ts'

/** Delay (ms) after an error that is not the job's: Redis was unavailable, full, or loading. */
export const infrastructureRetryMs = 1_000

const watchMs = 500

/** Parts that the runs of a worker need. */
export interface RunTerms {
  readonly table: JobTable
  readonly run: RunJob
  readonly onError: (error: unknown) => void
}

interface Run {
  readonly taken: TakenJob
  readonly id: string
  readonly controller: AbortController
  /** True once the handler was called. */
  hasBegun: boolean
  /** True once the handler has ended and nothing is left to stop. */
  isSettling: boolean
}

/** The runs of a worker: records their starts, applies their settlements, and stops them. */
export class JobRuns {
  readonly #terms: RunTerms
  readonly #runs = new Set<Run>()
  readonly #tracked = new Set<Promise<unknown>>()
  readonly #stop = new AbortController()
  readonly #abandoned: Promise<void>
  #stopWatching: (() => void) | undefined
  #letGo: () => void = () => undefined
  #isClosing = false

  constructor(terms: RunTerms) {
    this.#terms = terms
    this.#abandoned = new Promise((resolve) => {
      this.#letGo = resolve
    })
    if (terms.table.watch) {
      this.#stopWatching = repeat(watchMs, () => this.#watch(), terms.onError)
    }
  }

  get isClosing(): boolean {
    return this.#isClosing
  }

  /** Makes `close` wait for some work. Resolves when it ends, after reporting its error. */
  track(work: Promise<unknown>): Promise<unknown> {
    const tracked = work
      .catch((error: unknown) => this.#terms.onError(error))
      .finally(() => this.#tracked.delete(tracked))
    this.#tracked.add(tracked)
    return tracked
  }

  /**
   * Runs a job and applies its settlement. Resolves to false if the result is unknown, since nobody
   * is waiting.
   * @param controller stops the run
   * @param redeliver delivers a job that is put back
   */
  async run(
    taken: TakenJob,
    controller: AbortController,
    redeliver: (back: PutBack, message: number) => Promise<void>,
  ): Promise<boolean> {
    const run: Run = {
      ...{ taken, controller, id: randomUUID() },
      ...{ hasBegun: false, isSettling: false },
    }
    this.#runs.add(run)
    try {
      const settlement = await this.#settlementOf(run)
      run.isSettling = true
      const { table } = this.#terms
      const mark = { id: run.id, token: taken.token }
      if (!isPutBack(settlement)) {
        const isEnded = await this.insist(() => table.end(taken.job, mark, settlement))
        if (isEnded) settlement.onSettled?.()
        return isEnded !== undefined
      }
      const uncounts = run.hasBegun && settlement.outcome !== 'retry'
      const message = await this.insist(() => table.putBack(taken.job, mark, settlement, uncounts))
      if (message === undefined || message < 0) return message !== undefined
      settlement.onSettled?.()
      await redeliver(settlement, message)
      return true
    } finally {
      this.#runs.delete(run)
    }
  }

  async #settlementOf(run: Run): Promise<Settlement> {
    const { table, onError } = this.#terms
    const { taken, id, controller } = run
    const { token, interrupted, hasBegun, attempts } = taken
    if (taken.isToStop) return { outcome: 'cancelled' }
    // It may have been taken just before the worker was closed.
    if (this.#isClosing) return { outcome: 'returned' }
    const { retentionMs: _, record: __, ...job } = taken.job
    const delivery = {
      ...{ interrupted, hasBegun },
      async begin() {
        try {
          if (!(await table.begin(taken.job, { id, token }))) {
            throw new LeaseLost('the job now runs elsewhere, or has ended')
          }
          run.hasBegun = true
        } catch (error) {
          onError(error)
          throw error
        }
      },
    }
    try {
      return await this.#terms.run({ ...job, attempt: attempts + 1 }, controller.signal, delivery)
    } catch (error) {
      return { outcome: 'dead', error: errorText(error) }
    }
  }

  /** Repeats a step until it succeeds. Resolves to `undefined` once nobody is waiting. */
  async insist<T>(step: () => Promise<T>): Promise<T | undefined> {
    while (!this.#stop.signal.aborted) {
      try {
        return await step()
      } catch (error) {
        this.#terms.onError(error)
        await sleep(infrastructureRetryMs, this.#stop.signal)
      }
    }
    return undefined
  }

  /** @param stopTaking stops the worker from taking more jobs */
  async close(stopTaking: () => Promise<unknown>): Promise<void> {
    this.#isClosing = true
    const settled = async (): Promise<void> => {
      await stopTaking()
      while (this.#tracked.size > 0) await Promise.all(this.#tracked)
    }
    await Promise.race([settled(), this.#abandoned])
    this.#stopWatching?.()
  }

  abandon(): void {
    this.#stop.abort()
    this.#letGo()
  }

  /** Checks all runs in one call. */
  async #watch(): Promise<void> {
    if (this.#runs.size === 0) return
    const runs = [...this.#runs]
    const marks = runs.map(({ taken }) => [taken.job.id, taken.token] as const)
    const states = (await this.#terms.table.watch?.(marks)) ?? []
    for (const [index, { controller, isSettling }] of runs.entries()) {
      // A job that was just settled is `lost` as well.
      if (isSettling) continue
      if (states[index] === 'lost') controller.abort(new LeaseLost('the job now runs elsewhere'))
      if (states[index] === 'stop') controller.abort(cancellation())
    }
  }
}

/** Repeats work, one at a time. Returns a function that stops it. */
export function repeat(
  everyMs: number,
  work: () => Promise<void>,
  onError: (error: unknown) => void,
): () => void {
  let isBusy = false
  const again = async (): Promise<void> => {
    if (isBusy) return
    isBusy = true
    await work().catch(onError)
    isBusy = false
  }
  const timer = setInterval(() => void again(), everyMs).unref()
  return () => clearInterval(timer)
}

/** Creates the abort reason for a cancelled job's run. */
export function cancellation(): DOMException {
  return new DOMException('the job was cancelled', 'AbortError')
}
