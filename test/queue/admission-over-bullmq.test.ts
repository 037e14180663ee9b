import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { apiKey, mount, rateLimit } from '@sluice/express'
import {
  bullmqBroker,
  createAdmission,
  createQueue,
  createWorker,
  statusMonitor,
} from '@sluice/queue'
import { redisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

/** What a Redis that works keeps also on a machine which runs other tests. */
const PATIENT_MS = 15_000
const IMPATIENT_MS = 300

/** An API whose limits and queue are in a Redis each, and a worker. */
async function startApi(admit: 'always' | 'overflow', deadlineMs = PATIENT_MS) {
  const [limits, jobs] = [await startRedis(), await startRedis()]
  const servers = [limits, jobs]
  onTestFinished(async () => {
    await Promise.all(servers.map((server) => server.stop()))
  })
  const client = new Redis(limits.url)
  onTestFinished(() => client.disconnect())
  const observers = { onError: () => undefined }
  const broker = bullmqBroker({ connection: jobs.url, deadlineMs, observers })
  onTestFinished(() => broker.close())
  const worker = createWorker({ broker, handler: () => 'done' })
  onTestFinished(() => worker.close({ grace: 1 }))
  const queue = createQueue({ broker, identity: apiKey() })
  const limiter = rateLimit({
    ...{ name: 'orders', limit: 10, window: '1h', key: apiKey(), store: redisStore(client) },
    admission: createAdmission({ queue, monitor: '/jobs', admit }),
  })
  const app = express()
  app.use('/jobs', mount(statusMonitor({ queue })))
  app.post('/orders', limiter, express.json(), (req, res) => void res.json({ here: req.body }))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  async function ask(path: string, key?: string) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: path.startsWith('/jobs') ? 'GET' : 'POST',
      headers: {
        ...{ 'x-api-key': 'ada', 'content-type': 'application/json' },
        ...(key ? { 'idempotency-key': key } : {}),
      },
      ...(path === '/orders' ? { body: '{"page":1}' } : {}),
    })
    const body = await response.text()
    return { status: response.status, body, headers: response.headers }
  }
  const left = async () => (await limiter.limiter.peek('@key/ada')).outcomes[0]?.remaining
  const revive = async () => void servers.push(await startRedis({ port: jobs.port }))
  return { jobs, revive, ask, left, limiter: limiter.limiter }
}

describe('an admission over BullMQ', () => {
  it('queues, shows what came of it, and has one job for one key', async () => {
    const { ask } = await startApi('always')
    const first = await ask('/orders', '"1"')
    expect(first.status).toBe(202)
    const monitor = first.headers.get('location') ?? ''
    await until('it is done', async () => (await ask(monitor)).body.includes('"done"'))
    const again = await ask('/orders', '"1"')
    expect(again.status).toBe(200)
    expect(JSON.parse(again.body)).toMatchObject({ status: 'done', result: 'done' })
  })

  it('answers who sends a queued request again, though the limits have room', async () => {
    const { ask, limiter } = await startApi('overflow')
    for (let i = 0; i < 10; i += 1) expect((await ask('/orders')).status).toBe(200)
    const first = await ask('/orders', '"1"')
    expect(first.status).toBe(202)
    const monitor = first.headers.get('location') ?? ''
    await until('it is done', async () => (await ask(monitor)).body.includes('"done"'))
    await limiter.reset('@key/ada')
    expect((await ask('/orders')).status).toBe(200)
    const again = await ask('/orders', '"1"')
    expect(JSON.parse(again.body)).toMatchObject({ id: JSON.parse(first.body).id, status: 'done' })
  })

  it('leaves the body of what it does not take to the application, with a key or without', async () => {
    const { ask } = await startApi('overflow')
    for (const key of [undefined, '"1"']) {
      const answer = await ask('/orders', key)
      expect(answer.body).toBe('{"here":{"page":1}}')
    }
  })

  it('holds up nobody without a key where its Redis is frozen and nothing has to be queued', async () => {
    const { jobs, ask } = await startApi('overflow', IMPATIENT_MS)
    jobs.pause()
    const plain = await ask('/orders')
    expect(plain.status).toBe(200)
    const keyed = await ask('/orders', '"1"')
    expect(keyed.status).toBe(503)
    jobs.resume()
    await until(
      'the broker answers again',
      async () => (await ask('/orders', '"1"')).status === 200,
    )
  })

  it.each([
    [
      'frozen',
      (jobs: RedisServer) => {
        jobs.pause()
        return () => jobs.resume()
      },
    ],
    [
      'refusing',
      async (jobs: RedisServer) => {
        await jobs.cli('CONFIG', 'SET', 'maxmemory', 1)
        return () => jobs.cli('CONFIG', 'SET', 'maxmemory', 0)
      },
    ],
    [
      'gone',
      async (jobs: RedisServer, revive: () => Promise<void>) => {
        await jobs.kill()
        return revive
      },
    ],
  ])(
    'is unavailable in time while the Redis of its queue is %s, and charges nothing',
    async (_how, breaks) => {
      const { jobs, revive, ask, left } = await startApi('always', IMPATIENT_MS)
      expect((await ask('/orders')).status).toBe(202)
      const mend = await breaks(jobs, revive)
      for (let i = 0; i < 3; i += 1) {
        const answer = await ask('/orders', `"${i}"`)
        expect(answer.status).toBe(503)
        expect(answer.headers.get('retry-after')).toBe('5')
        expect(answer.headers.get('content-type')).toBe('application/problem+json')
      }
      await until('what was taken is given back', async () => (await left()) === 9)
      await mend()
      await until('it queues again', async () => (await ask('/orders', '"0"')).status < 300)
    },
  )
})
