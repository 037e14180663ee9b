import { afterAll, beforeAll, describe } from 'vitest'
import { describeDelivery } from '../broker-conformance.ts'
import { rabbitmqDriver } from '../broker-drivers.ts'
import { describeEnds } from '../broker-ends.ts'

const driver = rabbitmqDriver()

describe(`a broker: ${driver.name}`, () => {
  beforeAll(async () => driver.start?.())
  afterAll(async () => driver.stop?.())
  describeDelivery(driver)
  describeEnds(driver)
})
