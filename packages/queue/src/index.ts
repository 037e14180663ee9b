export {
  type Broker,
  type BrokerWorker,
  type Cancelled,
  type Delivery,
  type Depth,
  type Enqueued,
  type EnqueueTerms,
  type Idempotency,
  LeaseLost,
  type Page,
  type RunJob,
  type Settlement,
  type WorkOptions,
} from './broker.ts'
export type { BullmqBrokerOptions } from './brokers/bullmq/broker.ts'
export { bullmqBroker } from './brokers/bullmq/broker.ts'
export { type MemoryBrokerOptions, memoryBroker } from './brokers/memory/broker.ts'
export type { BrokerObservers } from './brokers/options.ts'
export type {
  ObservedQueue,
  QueueEvent,
  QueueObserverOptions,
  QueueObservers,
  RunEvent,
} from './event.ts'
export { createAdmission } from './http/admission.ts'
export type { RequestEnvelope } from './http/envelope.ts'
export type { JobResponse } from './http/job-responses.ts'
export type { AdmissionOptions, Admit, IdempotencyOptions } from './http/options.ts'
export { type StatusMonitorOptions, statusMonitor } from './http/status-monitor.ts'
export type { Job, JobState, JobStatus, NewJob } from './job.ts'
export type { FindResultUrl, QueueOptions } from './options.ts'
export {
  createQueue,
  type EnqueueResult,
  type JobRequest,
  type Queue,
  type SettledOptions,
} from './queue.ts'
export type { WorkerOptions } from './worker/options.ts'
export { type JobHandler, PermanentError, type RunContext } from './worker/run.ts'
export { type CloseOptions, createWorker, type Worker } from './worker/worker.ts'
