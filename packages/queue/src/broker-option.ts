import { invalid } from '@sluice/core'
import type { Broker } from './broker.ts'

/** Returns an option that is a broker, else throws. */
export function brokerOf(broker: unknown): Broker {
  if (isBroker(broker)) return broker
  throw invalid(
    { option: 'broker' },
    broker,
    'a broker, such as memoryBroker() or bullmqBroker({ … })',
  )
}

function isBroker(broker: unknown): broker is Broker {
  return typeof broker === 'object' && broker !== null && 'enqueue' in broker && 'work' in broker
}
