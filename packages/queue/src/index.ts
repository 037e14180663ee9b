export type {
  Broker,
  BrokerWorker,
  Cancelled,
  Depth,
  Enqueued,
  EnqueueTerms,
  Idempotency,
  Page,
  RunJob,
  Settlement,
  WorkOptions,
} from './broker.ts'
export { type BullmqBrokerOptions, bullmqBroker } from './brokers/bullmq-broker.ts'
export { type MemoryBrokerOptions, memoryBroker } from './brokers/memory-broker.ts'
export type { Job, JobState, JobStatus, NewJob } from './job.ts'
