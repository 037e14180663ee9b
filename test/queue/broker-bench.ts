import { type Broker, createWorker, type Worker, type WorkerOptions } from '@sluice/queue'
import { onTestFinished } from 'vitest'
import { BrokerBench } from '../../packages/testing/src/conformance/broker/broker-bench.ts'
import { fakeTime as fake } from '../support/fake-time.ts'

export function fakeTime(): void {
  fake(['Date', 'setTimeout', 'clearTimeout', 'setImmediate', 'performance'])
}

export { done, newJob, roomy } from '../../packages/testing/src/conformance/broker/broker-bench.ts'

/** Rejects when a run is to stop. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
}

/** The bench of the kit for one test, with a worker of whatever options. Both end with the test. */
export class TestBench extends BrokerBench {
  constructor(broker: Broker, openTwin?: () => Broker, waitMs = 20_000) {
    super({ broker, ...(openTwin && { openTwin }) }, waitMs)
    onTestFinished(() => this.end())
  }

  worker(options: Omit<WorkerOptions, 'broker'>): Worker {
    const worker = createWorker({ broker: this.broker, ...options } as WorkerOptions)
    onTestFinished(() => worker.close({ grace: 1 }))
    return worker
  }
}
