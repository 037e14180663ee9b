import type { RedisCluster } from '../support/redis-cluster.ts'
import type { Fault } from './fault.ts'

/** What happens where Redis is more than one server. Copies lag behind: a master that is lost takes its last writes with it. */
export const topologyFaults: readonly Fault[] = [
  {
    name: 'Sentinel: failover',
    topology: 'sentinel',
    store: 'gone',
    losesData: true,
    async inflict(redis) {
      const master = await redis.master()
      await master.kill()
      return () => redis.untilReplaced(master)
    },
  },
  {
    name: 'Sentinel: planned failover',
    topology: 'sentinel',
    store: 'flaky',
    // The old master takes writes until it follows the new one, and then they are gone.
    losesData: 'acknowledged',
    async inflict(redis) {
      const master = await redis.master()
      await redis.failover()
      return async () => {
        await redis.untilReplaced(master)
        await redis.untilReplica(master)
      }
    },
  },
  {
    name: 'Cluster: planned failover',
    topology: 'cluster',
    store: 'flaky',
    losesData: true,
    async inflict(redis) {
      const [master] = await redis.masters()
      const replica = master && (await redis.replicaOf(master))
      await replica?.cli('CLUSTER', 'FAILOVER')
      return () => redis.untilOk()
    },
  },
  {
    name: 'Cluster: a master lost',
    topology: 'cluster',
    store: 'flaky',
    losesData: true,
    async inflict(redis) {
      const [master] = await redis.masters()
      await master?.kill()
      return () => redis.untilOk()
    },
  },
  {
    name: 'Cluster: slots moved',
    topology: 'cluster',
    store: 'works',
    async inflict(redis) {
      await moveSlotsInUse(redis)
      return () => redis.untilOk()
    },
  },
]

/** Moves all slots of the first master that hold keys, one after the other. */
async function moveSlotsInUse(redis: RedisCluster): Promise<void> {
  const [master] = await redis.masters()
  const keys = await master?.cli('KEYS', '*')
  const slots = new Set<number>()
  for (const key of Array.isArray(keys) ? keys : [])
    slots.add(Number(await master?.cli('CLUSTER', 'KEYSLOT', String(key))))
  if (slots.size === 0) throw new Error('the first master has no keys')
  for (const slot of slots) {
    const move = await redis.beginMove(slot)
    // Some of the keys are here, and some there, for as long as that takes.
    await move.moveKeys(1)
    await move.finish()
  }
}
