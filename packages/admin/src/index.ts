export type { Authorize, Granted, Role } from './access/authorize.ts'
export { openApiDocument } from './api/openapi.ts'
export { type AdminOptions, createAdmin } from './create-admin.ts'
export type { AuditRecord, AuditSink, AuditTarget } from './stores/audit-trail.ts'
