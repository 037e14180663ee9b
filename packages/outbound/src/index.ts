export { type AuditStream, type AuditStreamOptions, auditStream } from './audit-stream.ts'
export type {
  CallMade,
  CallRefused,
  ObservedOutbound,
  OutboundEvent,
  OutboundObservers,
  OutboundPaused,
  OutboundRecovering,
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
