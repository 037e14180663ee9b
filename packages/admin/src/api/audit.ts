import type { Static } from '@sinclair/typebox'
import type { AuditRecord } from '../audit/audit-trail.ts'
import type { Answering } from './context.ts'
import type * as schemas from './schemas/views.ts'

/** The actions on keys and jobs, and the versions of the policies, as one list. */
export const audit: Answering<Static<typeof schemas.auditQuery>> = async ({ admin, query }) => {
  const { most = 200 } = query
  const [actions, versions] = await Promise.all([admin.views.audit(), admin.views.history()])
  const changes = versions.map(
    ({ id, kind, author, reason, at }): AuditRecord => ({
      ...{ id, at, actor: author, reason },
      action: `policies.${kind}`,
      phase: 'done',
      target: { version: id },
    }),
  )
  const records = [...actions, ...changes].sort((one, other) => other.at - one.at)
  return { records: records.slice(0, most) }
}
