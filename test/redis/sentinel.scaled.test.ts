import { setTimeout as sleep } from 'node:timers/promises'
import { redisStore } from '@sluice/redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { patientLimiter } from '../support/patient-limiter.ts'
import { type RedisClient, sentinelClients } from '../support/redis-clients.ts'
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

async function connectAll({ name, sentinels }: RedisSentinel) {
  const ports = sentinels.map(({ port }) => port)
  return Promise.all(
    Object.entries(sentinelClients).map(async ([client, make]) => {
      const made = make(ports, name)
      await made.connect()
      return { ...made, name: client }
    }),
  )
}

const limit = 200

/** Requests of one client for one key, one after the other, with what they came to. */
function load({ name, client, close }: RedisClient & { readonly name: string }) {
  const limiter = patientLimiter({
    store: redisStore(client, { prefix: name.replace(' ', ''), denialTtlMs: 0 }),
    limit,
    window: '1h',
    failureMode: 'closed',
    observers: { onStoreError: () => undefined },
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
      await close()
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

it('Sentinel leads every client to the master, which counts', async () => {
  for (const { name, client, close } of await connectAll(topology)) {
    const store = redisStore(client, { prefix: `plain-${name.replace(' ', '')}` })
    const limiter = patientLimiter({ store, limit: 2, window: '1h', failureMode: 'closed' })
    const decisions = [1, 2, 3].map(() => limiter.consume('k'))
    const allowed = (await Promise.all(decisions)).map((decision) => decision.allowed)
    expect(allowed, name).toEqual([true, true, false])
    await close()
  }
})

it.runIf(isProof)(
  'a failover of Sentinel under load is followed by every client, and forgets no more than was not replicated yet',
  async () => {
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
  },
)
