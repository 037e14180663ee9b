import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Limiter, StoreErrorEvent } from '@sluice/core'
import { collectMetrics } from '@sluice/metrics'
import { type RedisStoreOptions, redisStore, type UserClient } from '@sluice/redis'
import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import { describe, expect } from 'vitest'
import { checkOf, patientLimiter } from '../support/patient-limiter.ts'
import type { RedisCluster } from '../support/redis-cluster.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { it } from '../support/redis-test.ts'
import { isProof, scaled } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { type ClusterClient, clusterClients, modernClients } from './cluster-clients.ts'
import { identitiesOf, slotOfTag } from './tag-identities.ts'

let cluster: RedisCluster

it.beforeAll(({ cluster: own }) => {
  cluster = own
})

let opened = 0

async function open({ connect }: ClusterClient, limit: number, options: RedisStoreOptions = {}) {
  const { client, close } = await connect(cluster.ports)
  return { ...limiterOn(client, limit, options), close }
}

function limiterOn(
  client: UserClient,
  limit: number,
  options: RedisStoreOptions,
  names: readonly string[] = ['first', 'second'],
) {
  opened += 1
  const errors: string[] = []
  const limiter = patientLimiter({
    store: redisStore(client, { prefix: `cluster${opened}`, ...options }),
    policies: names.map((name, index) => ({ name, limit: limit + index, window: '1h' })),
    failureMode: 'closed',
    observers: { onStoreError: ({ error }: StoreErrorEvent) => void errors.push(error.message) },
  })
  return { limiter, errors }
}

/** One identity of each tag, so that every node has some. */
const everywhere = Array.from({ length: 64 }, (_, tag) => identitiesOf(tag, 1)[0] ?? '')

describe.each(scaled(modernClients, clusterClients))('$name on a Cluster', (clusterClient) => {
  it('admits exactly the limit of each key under parallel requests, on every node', async () => {
    for (const node of await cluster.masters()) await node.cli('SCRIPT', 'FLUSH')
    const { limiter, errors, close } = await open(clusterClient, 5)
    const decisions = await Promise.all(
      Array.from({ length: 12 }, () => everywhere.map((key) => limiter.consume(key))).flat(),
    )
    expect(errors).toEqual([])
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(5 * everywhere.length)
    for (const node of await cluster.masters()) {
      expect(String(await node.cli('INFO', 'memory'))).toContain('number_of_cached_scripts:1\r\n')
      expect(Number(await node.cli('DBSIZE'))).toBeGreaterThan(0)
    }
    await close()
  })

  it('forgets a policy on every node', async () => {
    const { client, close } = await clusterClient.connect(cluster.ports)
    const store = redisStore(client, { prefix: `forget${Math.random()}` })
    const limiter = patientLimiter({ store, limit: 5, window: '1h', name: 'gone' })
    await Promise.all(everywhere.map((key) => limiter.consume(key)))
    const { policy } = checkOf(limiter.policies[0])
    expect(await store.keys?.forgetPolicy?.(policy, {})).toMatchObject({ keys: everywhere.length })
    await close()
  })

  it.runIf(clusterClient.begin)('decides what is asked before it has connected', async () => {
    const { client, close } = clusterClient.begin?.(cluster.ports) ?? expect.unreachable()
    const { limiter, errors } = limiterOn(client, 5, {})
    const decisions = await Promise.all(everywhere.map((key) => limiter.consume(key)))
    expect(errors).toEqual([])
    expect(decisions.every(({ allowed }) => allowed)).toBe(true)
    await close()
  })

  it('decides right while a slot is moved under load', async () => {
    const { client, close } = await clusterClient.connect(cluster.ports)
    const several = limiterOn(client, 4, { denialTtlMs: 0 })
    const single = limiterOn(client, 4, { denialTtlMs: 0 }, ['only'])
    const tag = 5
    const quotas = identitiesOf(tag, 12).flatMap((key) =>
      [several, single].map(({ limiter }) => ({ key, limiter, admitted: 0 })),
    )
    let asked = 0
    const ask = async (quota: (typeof quotas)[number]): Promise<boolean> => {
      asked += 1
      const { allowed } = await quota.limiter.consume(quota.key)
      if (allowed) quota.admitted += 1
      return allowed
    }
    let isOver = false
    async function load(): Promise<void> {
      while (!isOver) {
        const some = quotas.filter(() => Math.random() < 0.2)
        await Promise.all(some.flatMap((quota) => [ask(quota), ask(quota)]))
        await sleep(2)
      }
    }
    // Some have begun to count before the move, some begin during it.
    for (const quota of quotas.slice(0, 12)) await ask(quota)
    const move = await cluster.beginMove(slotOfTag(tag))
    const loads = [load(), load()]
    const underLoad = async (): Promise<void> => {
      const before = asked
      await until('some more were asked', () => asked > before + 200)
    }
    await underLoad()
    await move.moveKeys(3)
    await underLoad()
    await move.finish()
    await underLoad()
    isOver = true
    await Promise.all(loads)
    for (const quota of quotas) while (await ask(quota));
    const admitted = quotas.map((quota) => quota.admitted)
    if (clusterClient.failsWhileSlotsMove) {
      expect(Math.max(...admitted)).toBeLessThanOrEqual(4)
    } else {
      expect([...several.errors, ...single.errors]).toEqual([])
      expect(admitted).toEqual(quotas.map(() => 4))
    }
    await close()
  })

  it('is not sent again by a client that lost its connection before the answer', async () => {
    const { limiter, close } = await open(clusterClient, 20, { denialTtlMs: 0 })
    const tag = 7
    const [key = ''] = identitiesOf(tag, 1)
    let asked = 1
    await limiter.consume(key)
    const node = await cluster.masterOf(slotOfTag(tag))
    let isLost = false
    // On a busy machine the answer may slip through before the connection is cut.
    while (!isLost && asked < 10) {
      asked += 1
      isLost = (await cutBeforeAnswer(node, () => limiter.consume(key))).source === 'closed'
      await until('connected again', async () => (await limiter.peek(key)).source === 'store')
    }
    expect(isLost).toBe(true)
    // Longer than clients wait before they send a command again.
    await sleep(300)
    const { outcomes } = await limiter.peek(key)
    expect(outcomes[0]?.remaining).toBeGreaterThanOrEqual(20 - asked)
    await close()
  })
})

describe.runIf(isProof)('clients of a Cluster as users set them up', () => {
  async function prove(client: UserClient): Promise<void> {
    const { limiter, errors } = limiterOn(client, 3, { denialTtlMs: 0 })
    const ask = () => Promise.all(everywhere.map((key) => limiter.consume(key)))
    const decisions = (await Promise.all([ask(), ask(), ask(), ask()])).flat()
    expect(errors).toEqual([])
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(3 * everywhere.length)
    if (decisions[0]) expect(await limiter.refund(decisions[0])).toBe(true)
    expect((await limiter.peek(everywhere[0] ?? '')).outcomes[0]?.remaining).toBe(1)
  }

  it.each([
    { keyPrefix: 'app:' },
    { redisOptions: { keyPrefix: 'app2:' } },
    { enableAutoPipelining: true },
    { scaleReads: 'slave' as const },
    { lazyConnect: true },
    { redisOptions: { stringNumbers: true } },
  ])('ioredis with %j', async (options) => {
    const [port = 0] = cluster.ports
    const client = new Cluster([{ host: '127.0.0.1', port }], options)
    await prove(client)
    client.disconnect()
  })

  it.each([{ useReplicas: true }, { minimizeConnections: true }, { RESP: 2 as const }])(
    'node-redis with %j',
    async (options) => {
      const rootNodes = [{ url: `redis://127.0.0.1:${cluster.ports[4]}` }]
      const client = createCluster({ rootNodes, ...options })
      await client.connect()
      await prove(client)
      client.destroy()
    },
  )
})

it('the busiest keys on a Cluster are merged over processes, whatever client each one has', async () => {
  const members = await Promise.all(
    modernClients.slice(0, 2).map(async ({ connect }) => {
      const { client, close } = await connect(cluster.ports)
      const store = redisStore(client, { prefix: 'hot' })
      const metrics = collectMetrics({ store })
      const options = { name: 'api', limit: 100, window: '1h', store } as const
      const limiter = patientLimiter({ ...options, observers: [metrics] })
      return { metrics, limiter, store, close }
    }),
  )
  for (const { limiter } of members) await limiter.consume('shared')
  await until('the fleet is known', () =>
    members.every(({ metrics }) => {
      const found = metrics.topKeys({ policy: 'api' })
      return found?.scope === 'fleet' && found.keys[0]?.count === members.length
    }),
  )
  for (const { metrics, store, close } of members) {
    metrics.close()
    await store.close()
    await close()
  }
}, 40_000)

/** Asks a node, and lets it decide, but cuts the connection before the answer is written. */
async function cutBeforeAnswer<T>(node: RedisServer, ask: () => Promise<T>): Promise<T> {
  const cutter = connect(node.port, '127.0.0.1').on('error', () => undefined)
  await once(cutter.setNoDelay(), 'connect')
  await node.cli('PING')
  node.pause()
  await sleep(20)
  const answer = ask()
  await sleep(50)
  // What arrived first is read first, and answers are written when all has been read.
  cutter.write('CLIENT KILL TYPE normal\r\n')
  await sleep(50)
  node.resume()
  const answered = await answer
  cutter.destroy()
  return answered
}

it.runIf(isProof)(
  'a master that is killed is replaced by its replica for every client, which then counts on',
  async () => {
    const all = await Promise.all(clusterClients.map((one) => open(one, 2, { denialTtlMs: 0 })))
    const rounds = (limiter: Limiter) => Promise.all(everywhere.map((key) => limiter.consume(key)))
    for (const { limiter } of all) {
      await rounds(limiter)
      await rounds(limiter)
    }
    const masters = await cluster.masters()
    const [victim] = masters
    // What a replica has not got yet is lost with its master.
    await until('the replicas have got it all', async () => {
      const infos = await Promise.all(masters.map((node) => node.cli('INFO', 'replication')))
      return infos.map(String).every((info) => {
        const offset = /master_repl_offset:(\d+)/.exec(info)?.[1]
        return info.includes(`,offset=${offset},lag=`)
      })
    })
    await victim?.kill()
    await until('a replica is promoted', async () => {
      const now = await cluster.masters()
      return now.length === masters.length && victim !== undefined && !now.includes(victim)
    })
    await cluster.untilOk()
    await Promise.all(
      all.map(async ({ limiter, close }, index) => {
        const name = clusterClients[index]?.name
        await until(`${name} finds the new master`, async () =>
          (await rounds(limiter)).every(({ source }) => source === 'store'),
        )
        const decisions = await rounds(limiter)
        expect(decisions.filter(({ allowed }) => allowed)).toEqual([])
        expect(decisions.every(({ source }) => source === 'store')).toBe(true)
        await close()
      }),
    )
  },
)
