export type { Authorize, Granted, Role } from './access/authorize.ts'
export { openApiDocument } from './api/openapi.ts'
export type { AuditRecord, AuditSink, AuditTarget } from './audit/audit-trail.ts'
export { type AdminOptions, createAdmin } from './create-admin.ts'
