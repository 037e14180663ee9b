import { describe } from 'vitest'
import { describeBroker } from '../describe-broker.ts'
import { RabbitmqBench } from './bench.ts'

describe('a broker: RabbitMQ', () => {
  const bench = RabbitmqBench.of()
  describeBroker({
    make: (limits) => bench.open(limits),
    twin: ({ name }) => bench.open({ name }),
    loseLease: () => bench.rabbitmq.control('close_all_connections', 'a test'),
  })
})
