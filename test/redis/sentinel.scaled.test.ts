import { setTimeout as sleep } from 'node:timers/promises'

import { redisStore, type UserClient } from '@sluice/redis'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { createSentinel } from 'redis'
import { createSentinel as createSentinel5 } from 'redis5'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { type RedisSentinel, startRedisSentinel } from '../support/redis-sentinel.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { isProof } from '../support/scale.ts'
import { until } from '../support/until.ts'

let topology: RedisSentinel

beforeAll(async () => {
  topology = await startRedisSentinel()
})

afterAll(async () => {
  await topology.stop()
})

interface Connected {
  readonly name: string
  readonly client: UserClient
  close(): void
}

/** Clients report every lost connection, which this test causes. */
const ignore = () => undefined

async function connectAll({ name, sentinels: servers }: RedisSentinel): Promise<Connected[]> {
  const sentinels = servers.map(({ port }) => ({ host: '127.0.0.1', port }))
  const ioredis6 = new Redis({ sentinels, name }).on('error', ignore)
  const ioredis5 = new Redis5({ sentinels, name }).on('error', ignore)
  const options = { name, sentinelRootNodes: sentinels }
  const nodeRedis6 = createSentinel(options).on('error', ignore)
  const nodeRedis5 = createSentinel5(options).on('error', ignore)
  await Promise.all([nodeRedis6.connect(), nodeRedis5.connect()])
  return [
    { name: 'ioredis 6', client: ioredis6, close: () => ioredis6.disconnect() },
    { name: 'ioredis 5', client: ioredis5, close: () => ioredis5.disconnect() },
    { name: 'node-redis 6', client: nodeRedis6, close: () => nodeRedis6.destroy() },
    { name: 'node-redis 5', client: nodeRedis5, close: () => nodeRedis5.destroy() },
  ]
}

const limit = 200

/** Requests of one client for one key, one after the other, with what they came to. */
function load({ name, client, close }: Connected) {
  const limiter = patientLimiter({
    store: redisStore(client, { prefix: name.replace(' ', ''), denialTtlMs: 0 }),
    limit,
    window: '1h',
    failureMode: 'closed',
    observers: { onStoreError: ignore },
  })
  const admittedAt: number[] = []
  let isOver = false
  async function run(): Promise<void> {
    while (!isOver) {
      const { allowed, source } = await limiter.consume('k')
      if (allowed && source === 'store') admittedAt.push(performance.now())
      await sleep(20)
    }
  }
  const running = run()
  return {
    name,
    limiter,
    admittedAt,
    async stop(): Promise<void> {
      isOver = true
      await running
      close()
    },
  }
}

/** A moment before which all that was written has reached the replica. */
async function replicated(master: RedisServer): Promise<number> {
  const replication = async (): Promise<string> => String(await master.cli('INFO', 'replication'))
  const at = performance.now()
  const written = Number(/master_repl_offset:(\d+)/.exec(await replication())?.[1])
  await until('the replica has what was written', async () => {
    const offset = /slave0:.*state=online,offset=(\d+)/.exec(await replication())?.[1]
    return offset !== undefined && Number(offset) >= written
  })
  return at
}

describe('Sentinel', () => {
  it('leads every client to the master, which counts', async () => {
    for (const { name, client, close } of await connectAll(topology)) {
      const store = redisStore(client, { prefix: `plain-${name.replace(' ', '')}` })
      const limiter = patientLimiter({ store, limit: 2, window: '1h', failureMode: 'closed' })
      const decisions = [1, 2, 3].map(() => limiter.consume('k'))
      const allowed = (await Promise.all(decisions)).map((decision) => decision.allowed)
      expect(allowed, name).toEqual([true, true, false])
      close()
    }
  })
})

describe.runIf(isProof)('a failover of Sentinel under load', () => {
  it('is followed by every client, and forgets no more than was not replicated yet', async () => {
    const loads = (await connectAll(topology)).map(load)
    const master = await topology.master()
    await until('all have begun to count', async () =>
      loads.every(({ admittedAt }) => admittedAt.length >= 20),
    )
    const safeAt = await replicated(master)
    const killedAt = performance.now()
    await master.kill()
    await topology.untilReplaced(master)
    for (const { name, admittedAt } of loads) {
      await until(`${name} counts again`, async () => admittedAt.some((at) => at > killedAt + 500))
    }
    await until('all of the limit is taken', async () => {
      const peeks = await Promise.all(loads.map(({ limiter }) => limiter.peek('k')))
      return peeks.every(({ allowed, source }) => source === 'store' && !allowed)
    })
    for (const { name, admittedAt, stop } of loads) {
      await stop()
      // Replication is asynchronous: what was answered since may be admitted once more.
      const atRisk = admittedAt.filter((at) => at > safeAt && at <= killedAt).length
      expect(admittedAt.length, name).toBeLessThanOrEqual(limit + atRisk)
      expect(admittedAt.length, name).toBeGreaterThanOrEqual(limit - 20)
    }
  })
})
