import { describeBroker } from './broker-conformance.ts'
import { bullmqDriver, clusterDriver, memoryDriver, nodeRedisDriver } from './broker-drivers.ts'

describeBroker(memoryDriver)
describeBroker(bullmqDriver())
describeBroker(nodeRedisDriver())
describeBroker(clusterDriver())
