import { clockFaults } from './clock-faults.ts'
import { commandFaults } from './command-faults.ts'
import type { Fault } from './fault.ts'
import { networkFaults } from './network-faults.ts'
import { serverFaults } from './server-faults.ts'
import { topologyFaults } from './topology-faults.ts'

/** All faults that can be made on one machine. */
export const faults: readonly Fault[] = [
  ...serverFaults,
  ...networkFaults,
  ...commandFaults,
  ...clockFaults,
  ...topologyFaults,
]
