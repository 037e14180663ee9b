import type { Static } from '@sinclair/typebox'
import type { AuditRecord } from '../audit/audit-trail.ts'
import type { Answering } from './context.ts'
import { policiesOf } from './policies.ts'
import type * as schemas from './schemas/views.ts'

/** Tells the page who asks, and which parts there are. */
export const session: Answering = ({ admin, who }) => {
  const { instance, policies, metrics, queues, store } = admin
  const hasLimiters = (policies?.limiters.length ?? 0) > 0
  return {
    ...who,
    instance,
    features: {
      policies: policies !== undefined,
      changes: policies?.canChange ?? false,
      keys: hasLimiters,
      metrics: metrics !== undefined,
      queues: queues.length > 0,
      unlock: store()?.keys?.forgetPolicy !== undefined,
    },
    keys: hasLimiters ? (policies?.keyNames ?? []) : [],
  }
}

/** Instances, their versions, and the store. */
export const fleet: Answering = async ({ admin }) => {
  const { version, refused } = policiesOf(admin).state
  const members = await admin.views.members()
  const self = { id: admin.instance, version, refused }
  const instances = members.length > 0 ? members : [self]
  const versions = new Map<string, number>()
  for (const each of instances) versions.set(each.version, (versions.get(each.version) ?? 0) + 1)
  const health = admin.storeHealth()
  return {
    scope: members.length > 0 ? 'fleet' : 'process',
    instances: instances.map((each) => ({ ...each, isThis: each.id === admin.instance })),
    versions: [...versions].map(([id, count]) => ({ version: id, instances: count })),
    store: health && {
      name: admin.store()?.name ?? 'store',
      ...{ breaker: health.breaker, isAway: health.isAway, keysOwed: health.keysOwed },
      ...{ instances: health.instances, clockSkewMs: health.clockSkewMs },
      ...{ hotKeys: health.hotKeys, grants: health.grants },
      regions: admin.store()?.region?.reports() ?? [],
    },
  }
}

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
