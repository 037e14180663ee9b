import { describe } from 'vitest'
import { scaled } from '../support/scale.ts'
import { drivers } from './broker-drivers.ts'
import { describeBroker } from './describe-broker.ts'

const all = Object.entries(drivers)

describe.each(all.slice(0, scaled(2, all.length)))('a broker: %s', (_name, driver) => {
  describeBroker(driver())
})
