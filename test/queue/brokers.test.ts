import { describeBroker } from './broker-conformance.ts'
import { bullmqDriver, memoryDriver } from './broker-drivers.ts'

describeBroker(memoryDriver)
describeBroker(bullmqDriver())
