import { brokerConformance } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { BrokerBench } from './broker-bench.ts'
import type { BrokerDriver } from './broker-drivers.ts'

/** How every broker must deliver jobs, and keep its bounds. */
export function describeDelivery(driver: BrokerDriver): void {
  brokerConformance({
    ...{ describe, it, waitMs: 20_000 },
    open() {
      const broker = driver.make()
      const { twin } = driver
      return { broker, ...(twin && { openTwin: () => twin(broker) }) }
    },
  })

  describe('delivers', () => {
    const bench = BrokerBench.of(driver)

    it('keeps as many dead letters as it is told', async () => {
      await bench.replace({ maxDeadLetters: 2 })
      bench.settling({ outcome: 'dead', error: 'no' })
      for (let i = 0; i < 4; i += 1) {
        const { id } = await bench.enqueued()
        await until('it failed', async () => (await bench.broker.status(id))?.state === 'failed')
      }
      expect((await bench.broker.deadLetters({ offset: 0, limit: 10 })).length).toBe(2)
    })
  })
}
