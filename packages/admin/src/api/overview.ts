import type { Static } from '@sinclair/typebox'
import { type Difference, differences, effective, type VersionRecord } from '@sluice/policies'
import type { Admin, Answering } from './context.ts'
import { policiesOf } from './policies.ts'
import { hiddenIn } from './policy-lists.ts'
import type * as schemas from './schemas/fleet.ts'

/** Returns the caller, and the parts that the page can show. */
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

export const fleet: Answering = async ({ admin }) => {
  const { version, refused } = policiesOf(admin).state
  const members = await admin.reads.members()
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

/** Lists actions on keys and jobs together with versions of the policies. */
export const audit: Answering<Static<typeof schemas.auditQuery>> = async ({
  admin,
  who,
  query,
}) => {
  const { most = 200 } = query
  const { audit, history } = admin.reads
  const read = Promise.all([audit(), history()])
  // While the store is unavailable, the page shows the last state that was read.
  const known = await read.catch((error: unknown) => {
    if (audit.last && history.last) return [audit.last, history.last, true] as const
    throw error
  })
  const [actions, versions, isAway = false] = known
  const layers = versions.map(({ layer: { kill, entries } }) => JSON.stringify([kill, entries]))
  const changes = versions.map((version, index) => {
    const { id, kind, author, reason, at } = version
    const before = versions[index + 1]
    return {
      ...{ id, at, actor: author, reason, action: `policies.${kind}`, phase: 'done' },
      target: { version: id },
      undone: versions.slice(0, index).findLast((_, later) => {
        // The state before the change was restored.
        const isOther = layers[later] !== layers[index]
        return isOther && layers.lastIndexOf(layers[later] ?? '') > index
      })?.id,
      ...(before && {
        before: before.id,
        changes: hiddenIn(admin.changesBetween(before, version), who),
      }),
    }
  })
  const records = [...actions, ...changes].sort((one, other) => other.at - one.at)
  return { records: records.slice(0, most), ...(isAway && { isAway }) }
}

/** Maximum number of differences in a record: a file may change everything. */
const maxChanges = 20
const maxKnown = 200

/** Returns what a version changed, as of its time. Each is compared once: it never changes. */
export function versionChanges(): Admin['changesBetween'] {
  const known = new Map<string, readonly Difference[]>()
  return (before, after) => {
    const id = JSON.stringify([before.id, before.at, after.id, after.at])
    const [from, to] = [before.layer.kill, after.layer.kill]
    const kill = from === to ? [] : [{ path: 'kill', from, to, newCount: false }]
    const fileOf = ({ file, layer }: VersionRecord) => effective(file, layer, after.at)
    const found = known.get(id) ?? [...kill, ...differences(fileOf(before), fileOf(after))]
    known.set(id, found.slice(0, maxChanges))
    for (const oldest of known.keys()) if (known.size > maxKnown) known.delete(oldest)
    return found.slice(0, maxChanges)
  }
}
