import { afterAll, beforeAll, describe } from 'vitest'
import { scaled } from '../support/scale.ts'
import { describeDelivery } from './broker-conformance.ts'
import { bullmqDriver, clusterDriver, memoryDriver, nodeRedisDriver } from './broker-drivers.ts'
import { describeEnds } from './broker-ends.ts'

const drivers = [memoryDriver, bullmqDriver(), ...scaled([], [nodeRedisDriver(), clusterDriver()])]

describe.each(drivers)('a broker: $name', (driver) => {
  beforeAll(async () => driver.start?.())
  afterAll(async () => driver.stop?.())
  describeDelivery(driver)
  describeEnds(driver)
})
