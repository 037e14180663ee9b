import type { Broker, BrokerWorker, Job, NewJob, RunJob, Settlement } from '@sluice/queue'
import { afterEach, beforeEach, expect } from 'vitest'
import { until } from '../support/until.ts'
import type { BrokerDriver, BrokerLimits } from './broker-drivers.ts'
import { newJob, roomy } from './new-job.ts'

/** A broker for each test, and what tests do with it. */
export class BrokerBench {
  readonly #driver: BrokerDriver
  readonly #workers: BrokerWorker[] = []
  #broker: Broker | undefined

  private constructor(driver: BrokerDriver) {
    this.#driver = driver
  }

  get broker(): Broker {
    if (!this.#broker) throw new Error('it is there in tests alone')
    return this.#broker
  }

  /** To be called where tests are described. */
  static of(driver: BrokerDriver): BrokerBench {
    const bench = new BrokerBench(driver)
    beforeEach(() => {
      bench.#broker = driver.make()
    })
    afterEach(async () => {
      await Promise.all(bench.#workers.splice(0).map((worker) => worker.close()))
      await bench.broker.close()
    })
    return bench
  }

  /** Another broker in place of that of the test. */
  async replace(limits: BrokerLimits): Promise<void> {
    await this.broker.close()
    this.#broker = this.#driver.make(limits)
  }

  work(run: RunJob, concurrency = 5): BrokerWorker {
    const options = { concurrency, leaseMs: 5_000, onStalled: () => undefined }
    const worker = this.broker.work(run, options)
    this.#workers.push(worker)
    return worker
  }

  /** Runs every job by giving the settlements one after the other, the last one again and again. */
  settling(...settlements: Settlement[]): Job[] {
    const runs: Job[] = []
    this.work(async (job) => {
      runs.push(job)
      return settlements[Math.min(runs.length, settlements.length) - 1] ?? { outcome: 'returned' }
    })
    return runs
  }

  async enqueued(job = newJob(), terms = roomy): Promise<NewJob> {
    expect(await this.broker.enqueue(job, terms)).toEqual({ outcome: 'enqueued', id: job.id })
    return job
  }

  reaches(id: string, state: string): Promise<void> {
    return until(`${id} is ${state}`, async () => (await this.broker.status(id))?.state === state)
  }
}
