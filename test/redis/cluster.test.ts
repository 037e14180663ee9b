import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Limiter, StoreErrorEvent } from '@sluice/core'
import { type RedisStoreOptions, redisStore, type UserClient } from '@sluice/redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.ts'
import { until } from '../support/until.ts'
import { type ClusterClient, clusterClients } from './cluster-clients.ts'
import { identitiesOf, slotOfTag } from './tag-identities.ts'

let cluster: RedisCluster

beforeAll(async () => {
  cluster = await startRedisCluster()
})

afterAll(async () => {
  await cluster.stop()
})

let opened = 0

interface Opened {
  readonly limiter: Limiter
  readonly errors: string[]
  close(): Promise<void>
}

async function open(
  { connect }: ClusterClient,
  limit: number,
  options: RedisStoreOptions = {},
): Promise<Opened> {
  const { client, close } = await connect(cluster.ports)
  return { ...limiterOn(client, limit, options), close }
}

function limiterOn(client: UserClient, limit: number, options: RedisStoreOptions) {
  opened += 1
  const errors: string[] = []
  const limiter = patientLimiter({
    store: redisStore(client, { prefix: `cluster${opened}`, ...options }),
    policies: [
      { name: 'first', limit, window: '1h' },
      { name: 'second', limit: limit + 1, window: '1h' },
    ],
    failureMode: 'closed',
    onStoreError: ({ error }: StoreErrorEvent) => void errors.push(error.message),
  })
  return { limiter, errors }
}

/** One identity of each tag, so that every node has some. */
const everywhere = Array.from({ length: 64 }, (_, tag) => identitiesOf(tag, 1)[0] ?? '')

describe.each(clusterClients)('$name on a Cluster', (clusterClient) => {
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

  it('decides right while a slot is moved under load, and no request fails', async () => {
    const { limiter, errors, close } = await open(clusterClient, 4, { denialTtlMs: 0 })
    const tag = 5
    const keys = identitiesOf(tag, 12)
    const admitted = new Map(keys.map((key) => [key, 0]))
    let isOver = false
    async function load(): Promise<void> {
      while (!isOver) {
        const key = keys[Math.floor(Math.random() * keys.length)] ?? ''
        const burst = await Promise.all([limiter.consume(key), limiter.consume(key)])
        for (const { allowed } of burst) {
          if (allowed) admitted.set(key, (admitted.get(key) ?? 0) + 1)
        }
        await sleep(2)
      }
    }
    // Some have begun to count before the move, some begin during it.
    for (const key of keys.slice(0, 6)) {
      if ((await limiter.consume(key)).allowed) admitted.set(key, 1)
    }
    const loads = [load(), load(), load()]
    const move = await cluster.beginMove(slotOfTag(tag))
    await sleep(100)
    await move.moveKeys(3)
    await sleep(150)
    await move.finish()
    await sleep(150)
    isOver = true
    await Promise.all(loads)
    for (const key of keys) {
      while ((await limiter.consume(key)).allowed) admitted.set(key, (admitted.get(key) ?? 0) + 1)
    }
    expect(errors).toEqual([])
    expect([...admitted.values()]).toEqual(keys.map(() => 4))
    await close()
  })

  it('is not sent again by a client that lost its connection before the answer', async () => {
    const { limiter, close } = await open(clusterClient, 20, { denialTtlMs: 0 })
    const [key = ''] = identitiesOf(7, 1)
    await limiter.consume(key)
    let sent = 1
    // What arrived first is decided first, and nearly always the connection is cut before the answer is written.
    for (let isCut = false; !isCut && sent < 10; sent += 1) {
      const node = await cluster.masterOf(slotOfTag(7))
      const cutter = connect(node.port, '127.0.0.1')
      await once(
        cutter.setNoDelay().on('error', () => undefined),
        'connect',
      )
      await node.cli('PING')
      node.pause()
      const asked = limiter.consume(key)
      await sleep(50)
      cutter.write('CLIENT KILL TYPE normal\r\n')
      await sleep(50)
      node.resume()
      isCut = (await asked).source === 'closed'
      await until('it is connected again', async () => (await limiter.peek(key)).source === 'store')
      cutter.destroy()
    }
    // Longer than clients wait before they send a command again.
    await sleep(300)
    expect((await limiter.peek(key)).outcomes[0]?.remaining).toBe(20 - sent)
    await close()
  })
})

describe('a master that is killed', () => {
  it('is replaced by its replica for every client, which then counts on', async () => {
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
      return infos.every((info) => {
        const offset = /master_repl_offset:(\d+)/.exec(String(info))?.[1]
        return String(info).includes(`,offset=${offset},lag=`)
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
  })
})
