export type { CallInfo, Fetch } from './calls/call.ts'
export { createFetch } from './create-fetch.ts'
export type { WaitForOptions } from './jobs/options.ts'
export { StillPendingError, waitFor } from './jobs/wait-for.ts'
export type {
  ClientObservers,
  ClientOptions,
  GiveUpEvent,
  WaitEvent,
  WaitedEvent,
} from './options.ts'
