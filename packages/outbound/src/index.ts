export { type AuditStream, type AuditStreamOptions, auditStream } from './audit-stream.ts'
export { createOutbound } from './outbound.ts'
export type {
  CallMade,
  CallRefused,
  OutboundEvent,
  OutboundObserver,
  OutboundPaused,
  OutboundRecovering,
  RefusalReason,
} from './outbound-event.ts'
export type {
  CallContext,
  CallOptions,
  Outbound,
  OutboundFetchInit,
  OutboundLimit,
  OutboundOptions,
} from './outbound-options.ts'
