import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Broker,
  type BullmqBrokerOptions,
  bullmqBroker,
  createWorker,
  type QueueEvent,
} from '@sluice/queue'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { isProof, scaled } from '../support/scale.ts'
import { until } from '../support/until.ts'
import { newJob, roomy } from './new-job.ts'

const quiet = { observers: { onError: () => undefined } }
const freePlace = async (): Promise<string> => `redis://127.0.0.1:${await freePort()}`

type Connected = (url: string) => BullmqBrokerOptions['connection']

const byUrl: Connected = (url) => url
const byIoredis: Connected = (url) => () => new Redis(url, { maxRetriesPerRequest: null })
const byNodeRedis: Connected = (url) => () => createClient({ url })

async function setUp(deadlineMs = 2_000, connected = byUrl) {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const broker = bullmqBroker({ connection: connected(redis.url), deadlineMs, ...quiet })
  onTestFinished(() => broker.close())
  await until('it is connected', async () => (await broker.depth()).depth === 0)
  return { redis, broker }
}

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

const failed = { code: 'SLUICE_BROKER_FAILED' }

describe('a broker whose Redis is frozen', () => {
  it('leaves nothing behind that it did not answer for, and works at once when Redis goes on', async () => {
    const { redis, broker } = await setUp(300)
    redis.pause()
    const asked = Array.from({ length: 500 }, () => broker.enqueue(newJob(), roomy))
    const answers = await Promise.allSettled(asked)
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(0)
    redis.resume()
    const isBack = async () => (await broker.enqueue(newJob(), roomy)).outcome === 'enqueued'
    await until('it works', isBack, { timeoutMs: 5_000 })
    await until('what was late is undone', async () => (await broker.depth()).depth === 1)
    expect(Number(await redis.cli('LLEN', 'bull:jobs:wait'))).toBe(1)
  })

  it.each([byUrl, byNodeRedis])(
    'carries out nothing later that it refused (%#)',
    async (connected) => {
      const { redis, broker } = await setUp(300, connected)
      const waiting = newJob()
      const dead = newJob()
      const end = { outcome: 'dead', error: 'no' } as const
      const run = async () => end
      await broker.enqueue(dead, roomy)
      const worker = broker.work(run, {
        concurrency: 1,
        leaseMs: 5_000,
        onStalled: () => undefined,
      })
      await until('it failed', async () => (await broker.status(dead.id))?.state === 'failed')
      await worker.close()
      await broker.enqueue(waiting, roomy)
      redis.pause()
      const controls = [broker.cancel(waiting.id), broker.retry(dead.id), broker.forget(dead.id)]
      for (const control of controls) {
        await expect(control).rejects.toMatchObject({ code: 'SLUICE_NOT_DONE' })
      }
      redis.resume()
      await until('it works', async () => (await broker.depth()).depth >= 0)
      expect(await broker.status(waiting.id)).toMatchObject({ state: 'pending' })
      expect(await broker.status(dead.id)).toMatchObject({ state: 'failed' })
      expect(await broker.cancel(waiting.id)).toBe('cancelled')
      expect(await broker.forget(dead.id)).toBe(true)
    },
  )

  it('carries out no change after its deadline that was on the way', async () => {
    const clients: Redis[] = []
    const { redis, broker } = await setUp(300, (url) => () => {
      const client = new Redis(url, { maxRetriesPerRequest: null })
      clients.push(client)
      return client
    })
    const job = newJob()
    await broker.enqueue(job, roomy)
    const [client] = clients
    const name = 'sluiceQueue:bullmq/time'
    const time: unknown = Reflect.get(client ?? {}, name)
    if (!client || typeof time !== 'function') throw new Error('no command')
    Reflect.set(client, name, async (...args: unknown[]) => {
      const reply: unknown = await time.apply(client, args)
      redis.pause()
      await sleep(10)
      return reply
    })
    await expect(broker.cancel(job.id)).rejects.toMatchObject({ code: 'SLUICE_UNANSWERED' })
    redis.resume()
    await until('it works', async () => (await broker.depth()).depth >= 0)
    expect(await broker.status(job.id)).toMatchObject({ state: 'pending' })
  })

  it('counts the end of a run once, although the first answer to it was lost', async () => {
    const clients: Redis[] = []
    const { redis, broker } = await setUp(2_000, (url) => () => {
      const client = new Redis(url, { maxRetriesPerRequest: null })
      clients.push(client)
      return client
    })
    let calls = 0
    for (const client of clients) {
      const name = 'sluiceQueue:put-back'
      const putBack: unknown = Reflect.get(client, name)
      if (typeof putBack !== 'function') continue
      Reflect.set(client, name, async (...args: unknown[]) => {
        const reply: unknown = await putBack.apply(client, args)
        calls += 1
        if (calls === 1) throw new Error('the connection was lost')
        return reply
      })
    }
    const job = newJob()
    await broker.enqueue(job, roomy)
    const worker = broker.work(
      async (_job, _signal, { begin }) => {
        await begin()
        return { outcome: 'postponed', delayMs: 60_000, pausesWorker: false }
      },
      { concurrency: 1, leaseMs: 5_000, onStalled: () => undefined },
    )
    await until('it is put back', async () => calls === 2)
    await worker.close()
    expect(await redis.cli('HGET', `bull:jobs:${job.id}`, 'sluice:starts')).toBe('0')
  })

  it('asks it for little while it does not answer, and lets nobody wait', async () => {
    const { redis, broker } = await setUp(200)
    redis.pause()
    await Promise.allSettled(Array.from({ length: 300 }, () => broker.enqueue(newJob(), roomy)))
    const before = await commandsOf(redis, async () => {
      const reasons: string[] = []
      for (let i = 0; i < 200; i += 1) {
        const error: unknown = await broker.enqueue(newJob(), roomy).catch((reason) => reason)
        expect(error).toMatchObject(failed)
        reasons.push(String(error))
      }
      // All others are probes, which wait for their deadline.
      const atOnce = reasons.filter((reason) => reason.endsWith('the broker does not answer'))
      expect(atOnce.length).toBeGreaterThan(150)
      redis.resume()
      await until('it works', async () => (await broker.depth()).depth === 0)
    })
    // 100 asks of two commands each, and what little came later.
    expect(before).toBeLessThan(500)
  })

  it('runs the job of an enqueue that was not answered under its key, once it is asked for again', async () => {
    const { redis, broker } = await setUp(200)
    const terms = { ...roomy, idempotency: { key: 'order-1', fingerprint: 'a' } }
    redis.pause()
    await expect(broker.enqueue(newJob(), terms)).rejects.toMatchObject(failed)
    redis.resume()
    await until('it works', async () => (await broker.depth()).depth === 0)
    const answer = await broker.enqueue(newJob(), terms)
    expect(answer).toMatchObject({ outcome: 'enqueued' })
    expect(await broker.depth()).toMatchObject({ depth: 1 })
  })
})

describe('an enqueue whose job is added when nobody waits any more', () => {
  async function late(): Promise<{ broker: Broker; added: readonly string[] }> {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const added: string[] = []
    const connection = () =>
      adding(redis.url, async (add) => {
        await sleep(200)
        const answer = await add()
        added.push('job')
        return answer
      })
    const broker = bullmqBroker({ connection, deadlineMs: 100, ...quiet })
    onTestFinished(() => broker.close())
    await until('it is connected', async () => (await broker.depth()).depth === 0)
    return { broker, added }
  }

  it('withdraws the job', async () => {
    const { broker, added } = await late()
    const job = newJob()
    await expect(broker.enqueue(job, roomy)).rejects.toMatchObject(failed)
    await until('the job is added', () => added.length === 1)
    await until('its place is free', async () => (await broker.depth()).depth === 0)
    expect(await broker.status(job.id)).toBeUndefined()
  })

  it('keeps a job that an idempotency key stands for', async () => {
    const { broker } = await late()
    const job = newJob()
    const terms = { ...roomy, idempotency: { key: 'order-1', fingerprint: 'a' } }
    await expect(broker.enqueue(job, terms)).rejects.toMatchObject(failed)
    await until('it is there', async () => (await broker.status(job.id))?.state === 'pending')
    const known = { outcome: 'known', id: job.id }
    expect(await broker.enqueue(newJob(), terms)).toEqual(known)
    expect(await broker.depth()).toMatchObject({ depth: 1 })
  })
})

describe('an enqueue that fails though the job was added', () => {
  it('does not take the place of the job, nor its key', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const connection = () =>
      adding(redis.url, async (add) => {
        await add()
        throw new Error('Command timed out')
      })
    const broker = bullmqBroker({ connection, ...quiet })
    onTestFinished(() => broker.close())
    const job = newJob()
    const terms = { ...roomy, idempotency: { key: 'order-1', fingerprint: 'a' } }
    await expect(broker.enqueue(job, terms)).rejects.toMatchObject(failed)
    expect(await broker.status(job.id)).toMatchObject({ state: 'pending' })
    expect(await broker.depth()).toMatchObject({ depth: 1 })
    const known = { outcome: 'known', id: job.id }
    expect(await broker.enqueue(newJob(), terms)).toEqual(known)
  })
})

interface Running {
  readonly redis: RedisServer
  readonly broker: Broker
  begun(): Promise<void>
}

const connections: readonly (readonly [string, Connected])[] = [
  ['a URL', byUrl],
  ['a client of ioredis', byIoredis],
  ['a client of node-redis', byNodeRedis],
]

describe.each(connections.slice(0, scaled(1, 3)))(
  'closing without Redis: %s',
  (_what, connected) => {
    const options = { handler: () => new Promise(() => undefined), lease: '1s' } as const

    /** The grace, the last words, a second for the broker and one for the connection are 3,100 ms; the machine may be busy. */
    const boundMs = 10_000

    async function closes(broker: Broker, run: () => Promise<void>): Promise<number> {
      const worker = createWorker({ broker, ...options })
      await run()
      return msOf(async () => {
        await worker.close({ grace: 100 })
        await broker.close()
      })
    }

    async function running(connected: Connected): Promise<Running> {
      const { redis, broker } = await setUp(2_000, connected)
      const job = newJob()
      await broker.enqueue(job, roomy)
      const begun = (): Promise<void> =>
        until('it runs', async () => (await broker.depth()).running === 1)
      return { redis, broker, begun }
    }

    it('ends where it never was', async () => {
      const broker = bullmqBroker({ connection: connected(await freePlace()), ...quiet })
      expect(await closes(broker, async () => undefined)).toBeLessThan(boundMs)
    })

    it.runIf(isProof)('ends when it was killed', async () => {
      const { redis, broker, begun } = await running(connected)
      const tookMs = await closes(broker, async () => {
        await begun()
        await redis.kill()
      })
      expect(tookMs).toBeLessThan(boundMs)
    })

    it('ends while it is frozen', async () => {
      const { redis, broker, begun } = await running(connected)
      const tookMs = await closes(broker, async () => {
        await begun()
        redis.pause()
      })
      expect(tookMs).toBeLessThan(boundMs)
    })

    it.runIf(isProof)('ends a broker whose workers nobody has closed', async () => {
      const { redis, broker, begun } = await running(connected)
      createWorker({ broker, ...options })
      await begun()
      redis.pause()
      expect(await msOf(() => broker.close())).toBeLessThan(boundMs)
    })
  },
)

describe('errors that are none of a job', () => {
  it('use up none of its attempts', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const errors: Error[] = []
    const onError = (error: Error): void => void errors.push(error)
    const broker = bullmqBroker({ connection: redis.url, observers: { onError } })
    onTestFinished(() => broker.close())
    const job = newJob()
    await broker.enqueue(job, roomy)
    // What every script fails at that wants the places: as out of memory, or loading.
    await redis.cli('RENAME', 'bull:jobs:sluice:places', 'aside')
    await redis.cli('SET', 'bull:jobs:sluice:places', 'no places')
    const events: QueueEvent[] = []
    const attempts: number[] = []
    const worker = createWorker({
      broker,
      attempts: 1,
      handler: ({ attempt }) => void attempts.push(attempt),
      observers: { onEvent: (event) => events.push(event) },
    })
    onTestFinished(() => worker.close())
    await until('it was tried some times', () => errors.length >= 3)
    await redis.cli('RENAME', 'aside', 'bull:jobs:sluice:places')
    await until('it is done', async () => (await broker.status(job.id))?.state === 'done')
    expect(attempts).toEqual([1])
    expect(events.map(({ type }) => type)).toEqual(['started', 'done'])
  })
})

/** A client that adds jobs in its own way. */
function adding(url: string, how: (add: () => Promise<unknown>) => Promise<unknown>): Redis {
  const client = new Redis(url, { maxRetriesPerRequest: null })
  const define = client.defineCommand.bind(client)
  client.defineCommand = (name, definition) => {
    define(name, definition)
    if (!name.startsWith('addStandardJob')) return
    const add: unknown = Reflect.get(client, name)
    if (typeof add !== 'function') throw new Error(`there is no ${name}`)
    Reflect.set(client, name, (...args: unknown[]) => how(async () => add.apply(client, args)))
  }
  return client
}

/** Commands of scripts that a server carries out meanwhile. */
async function commandsOf(redis: RedisServer, meanwhile: () => Promise<void>): Promise<number> {
  await meanwhile()
  const stats = String(await redis.cli('INFO', 'commandstats'))
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}
