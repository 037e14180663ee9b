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

const underGrants = [
  'refused while running',
  'replies cut mid-way',
  'connection reset storm',
  'killed, back empty',
]

/**
 * The faults that are also run with `prefetch`, by fleets of one: the processes of a larger fleet get too few requests of
 * the busy key for a grant.
 */
export const faultsUnderGrants: readonly Fault[] = faults.filter(({ name }) =>
  underGrants.includes(name),
)
