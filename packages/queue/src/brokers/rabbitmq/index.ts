export { type RabbitmqBrokerOptions, rabbitmqBroker } from './broker.ts'
