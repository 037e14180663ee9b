import { storeConformance } from '@sluice/testing'
import { describe, it } from 'vitest'
import { type StoreDriver, serverOf, storeDrivers } from './store-drivers.ts'

describe.each(storeDrivers)('$name', (driver: StoreDriver) => {
  const { open } = serverOf(driver)
  storeConformance({ describe, it, open })
})
