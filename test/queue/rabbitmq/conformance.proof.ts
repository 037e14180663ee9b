import { describe } from 'vitest'
import { describeBroker } from '../describe-broker.ts'
import { rabbitmqBench } from './bench.ts'

describe('a broker: RabbitMQ', () => {
  const bench = rabbitmqBench()
  describeBroker({
    make: (limits) => bench.open(limits),
    twin: ({ name }) => bench.open({ name }),
    loseLease: bench.loseChannels,
  })
})
