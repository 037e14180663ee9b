export { type AuditStream, type AuditStreamOptions, auditStream } from './audit-stream.ts'
export type {
  ObservedOutbound,
  OutboundEvent,
  OutboundObservers,
  RefusalReason,
} from './event.ts'
export type {
  CallContext,
  CallOptions,
  Outbound,
  OutboundFetchInit,
  OutboundLimit,
  OutboundOptions,
} from './options.ts'
export { createOutbound } from './outbound.ts'
