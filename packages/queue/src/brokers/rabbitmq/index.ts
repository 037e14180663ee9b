export { rabbitmqBroker } from './broker.ts'
export type { RabbitmqBrokerOptions } from './options.ts'
