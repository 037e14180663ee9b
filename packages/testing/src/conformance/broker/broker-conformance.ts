import { knownFields, type MaybePromise } from '@sluice/core'
import { testRunner, type WaitingRunner, waitMsOf } from '../test-runner.ts'
import { bounds } from './bounds.ts'
import { BrokerBench, type OpenedBroker } from './broker-bench.ts'
import { delivery } from './delivery.ts'
import { endings } from './endings.ts'

export interface BrokerConformanceOptions extends WaitingRunner {
  /** Opens a broker for one test, with an empty queue. */
  open(): MaybePromise<OpenedBroker>
}

const parts = { delivery, bounds, endings }

/**
 * Describes the tests that every broker must pass: delivery, retries, bounds, idempotency keys,
 * cancelled jobs and dead letters.
 * @example
 * brokerConformance({ describe, it, open: () => ({ broker: arrayBroker() }) })
 */
export function brokerConformance(options: BrokerConformanceOptions): void {
  knownFields(options, 'brokerConformance', ['describe', 'it', 'open', 'waitMs'])
  const { describe, it } = testRunner(options, 'brokerConformance')
  const waitMs = waitMsOf(options)
  for (const [part, cases] of Object.entries(parts)) {
    describe(`a broker: ${part}`, () => {
      for (const [name, test] of Object.entries(cases)) {
        it(name, async () => {
          const bench = new BrokerBench(await options.open(), waitMs)
          try {
            await test(bench)
          } finally {
            await bench.end()
          }
        })
      }
    })
  }
}
